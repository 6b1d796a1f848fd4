import { useMemo, useState } from "react";
import { Asking } from "../../parts/Asking";
import { useActing } from "../../parts/acting";
import { useFirst } from "../../parts/First";
import { bytes, count } from "../../parts/format";
import { Empty, Loaded } from "../../parts/Messages";
import { Ago } from "../../parts/Times";
import { useSelection } from "../../shell/addresses";
import { attempt } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { changesTasks } from "../../state/changes";
import { useHorizon } from "../../state/horizon";
import { usePage } from "../../state/page";
import { Conversation } from "./Conversation";

/** The conversations of the agent: tasks of one thread share their history. */
export function ThreadsTab({ agentId }: { agentId: string }) {
  const [opened, open] = useSelection("thread");
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("task.threads", { sessionId, agentId }, (note) => changesTasks(note, agentId));
  const at = useHorizon();
  const all = answer.data?.threads;
  const threads = useMemo(
    () => (all ?? []).filter(({ firstAt }) => firstAt <= at).sort((one, other) => other.lastAt - one.lastAt),
    [all, at],
  );
  const including = threads.findIndex(({ threadId }) => threadId === opened);
  const { first, more } = useFirst(threads, { step: 100, including });
  return (
    <>
      {at === Number.POSITIVE_INFINITY && <ContextSize agentId={agentId} />}
      <Loaded answer={answer}>
        {() =>
          threads.length === 0 ? (
            <Empty title="No conversation yet.">
              Each task opens a thread of its own, or continues one: then the model sees what was said in it before.
            </Empty>
          ) : (
            <ul className="agent-list">
              {first.map(({ threadId, tasks, lastAt }) => (
                <li key={threadId} className="agent-item" data-open={threadId === opened}>
                  <button
                    type="button"
                    className="agent-row"
                    aria-expanded={threadId === opened}
                    onClick={() => open(threadId === opened ? "" : threadId)}
                  >
                    <span className="agent-row-title ellipsis mono">{threadId}</span>
                    <span className="agent-row-facts quiet">
                      {lastAt <= at && (
                        <>
                          <span>
                            {count(tasks)} {tasks === 1 ? "task" : "tasks"}
                          </span>
                          <Ago at={lastAt} />
                        </>
                      )}
                    </span>
                  </button>
                  {threadId === opened && (
                    <>
                      <Conversation agentId={agentId} threadId={threadId} />
                      <EraseThread agentId={agentId} threadId={threadId} onErased={answer.again} />
                    </>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {more}
    </>
  );
}

interface EraseProps {
  agentId: string;
  threadId: string;
  onErased: () => void;
}

/** Lets a conversation go for good. */
function EraseThread({ agentId, threadId, onErased }: EraseProps) {
  const [isAsking, setIsAsking] = useState(false);
  const acting = useActing();
  const erase = async () => {
    await attempt("task.deleteThread", { agentId, threadId });
    onErased();
  };
  return (
    <p>
      <button type="button" className="danger" {...acting} onClick={() => setIsAsking(true)}>
        Erase this conversation…
      </button>
      {isAsking && (
        <Asking
          title="Erase this conversation?"
          action="Erase for good"
          onSubmit={async () => void (await erase())}
          onClose={() => setIsAsking(false)}
        >
          <p>What was said in it goes, with its mails and what the log tells of it. It cannot be brought back.</p>
        </Asking>
      )}
    </p>
  );
}

/** How much of all conversations is kept in memory, against what may be. */
function ContextSize({ agentId }: { agentId: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const limits = useAnswer("limits.get", { sessionId, agentId }, (note) => changesTasks(note, agentId));
  const context = limits.data?.limits.find(({ name }) => name === "max_context_bytes");
  return (
    <p className="quiet agent-facts">
      <span>
        Contexts in memory now: {context === undefined ? "…" : bytes(context.used ?? 0)}
        {context !== undefined && context.value > 0 && ` of ${bytes(context.value)}`}
      </span>
    </p>
  );
}
