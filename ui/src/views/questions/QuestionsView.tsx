import { useMemo, useState } from "react";
import { AgentLink } from "../../parts/AgentLink";
import { useFirst } from "../../parts/First";
import { Empty, Loaded, LookedThrough } from "../../parts/Messages";
import { visible } from "../../parts/markdown/visible";
import { Ago } from "../../parts/Times";
import { usePlace } from "../../shell/addresses";
import { useHorizon } from "../../state/horizon";
import { useNewest } from "../../state/newest";
import { usePage, useWorld } from "../../state/page";
import { Question } from "./Question";
import "./questions.css";

/** Each card has its form to load and to draw. */
const CARDS = 30;
const PAGE = 50;

/** What agents ask the person, and what became of earlier questions. */
export default function QuestionsView() {
  const questions = useWorld((world) => world.questions);
  const { item: marked } = usePlace();
  const waiting = useMemo(() => {
    const all = [...questions.values()];
    const named = all.findIndex(({ questionId }) => questionId === marked);
    return named < CARDS ? all : [...all.splice(named, 1), ...all];
  }, [questions, marked]);
  const { first, more } = useFirst(waiting, { step: CARDS });
  return (
    <>
      <div className="view-head">
        <h1>Questions</h1>
        <span className="quiet" role="status">
          {questions.size === 0 ? "nothing waits" : `${questions.size} to answer`}
        </span>
      </div>
      {waiting.length === 0 ? (
        <Empty title="No agent asks you anything.">
          An agent that is granted the tool <code>ask_user</code> can ask you while it works. Its task waits here for
          your answer, in a form if it wants one, and takes no place meanwhile.
        </Empty>
      ) : (
        <>
          <ul className="cards">
            {first.map((question) => (
              <li key={question.questionId}>
                <Question question={question} isMarked={question.questionId === marked} />
              </li>
            ))}
          </ul>
          {more}
        </>
      )}
      <Closed />
    </>
  );
}

/** What was answered before, and what was not. */
function Closed() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const at = useHorizon();
  const [limit, setLimit] = useState(PAGE);
  const answer = useNewest(
    "question.list",
    { sessionId, questionState: null },
    { wanted: limit, refreshOn: ({ name }) => name.startsWith("question.") },
  );
  const closed = (answer.data?.questions ?? []).filter(
    ({ state, decidedAt, askedAt }) => state !== "pending" && (decidedAt ?? askedAt) <= at,
  );
  return (
    <section aria-labelledby="questions-closed">
      <div className="view-head">
        <h2 id="questions-closed">Closed</h2>
      </div>
      <Loaded answer={answer}>
        {() => (
          <>
            {closed.length === 0 && !answer.isLoading && <Empty title="No question was closed yet." />}
            <ul className="questions-list">
              {closed.map(({ questionId, state, agentId, question, answer: given, reason, decidedBy, decidedAt }) => (
                <li key={questionId} className="card questions-closed">
                  <span>
                    <b>{state}</b> {decidedBy !== null && `by ${decidedBy} `}
                    <Ago at={decidedAt ?? 0} />, asked by <AgentLink agentId={agentId} />
                  </span>
                  <span>{visible(question)}</span>
                  {given !== null && <code className="mono">{visible(JSON.stringify(given))}</code>}
                  {reason !== "" && <span className="quiet">{visible(reason)}</span>}
                </li>
              ))}
            </ul>
            <LookedThrough most={answer.lookedThrough} />
            {answer.hasOlder && (
              <button type="button" onClick={() => setLimit(limit + PAGE)}>
                Show earlier ones
              </button>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}
