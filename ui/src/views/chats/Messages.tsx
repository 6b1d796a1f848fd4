import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useShallow } from "zustand/react/shallow";
import type { MessageRecord } from "../../client/client";
import { Attachments } from "../../parts/Attachments";
import { joinedFinal } from "../../parts/continuations";
import { Markdown } from "../../parts/Markdown";
import { At } from "../../parts/Times";
import { USER } from "../../projection/coordination";
import { useAddress } from "../../shell/addresses";
import { useName } from "../../state/names";
import { type Stream, useIsPast, usePage, useWorld } from "../../state/page";
import { NOTHING_WRITTEN } from "../../state/streams";
import { Doing } from "./Doing";
import { doingOf } from "./doing";
import { type Ending, type Known, notAsked } from "./known";
import { colourOf, Sender } from "./names";
import type { Answer, Row } from "./rows";
import { Thoughts } from "./Thoughts";
import { endingOf, streamOf } from "./transcript";

interface RowProps {
  row: Row;
  known: Known;
  hopLimit: number;
  mentions: readonly string[];
}

export function TranscriptRow({ row, known, hopLimit, mentions }: RowProps) {
  if (row.kind === "message") {
    const { message } = row;
    return (
      <>
        <Message message={message} mentions={mentions} />
        <NotAsked message={message} hopLimit={hopLimit} known={known} />
      </>
    );
  }
  return (
    <>
      {row.answers.length > 0 && (
        <div className="chat-answers">
          {row.answers.map((answer) => (
            <div key={answer.taskId} className="chat-answer">
              <AnswerCell answer={answer} mentions={mentions} />
              {answer.message && <NotAsked message={answer.message} hopLimit={hopLimit} known={known} />}
            </div>
          ))}
        </div>
      )}
      {row.silent.map((answer) => (
        <Silent key={answer.taskId} answer={answer} ending={known.endings.get(answer.taskId)} />
      ))}
    </>
  );
}

function Message({ message, mentions }: { message: MessageRecord; mentions: readonly string[] }) {
  const { sender, createdAt, text, taskId } = message;
  return (
    <article
      className={sender === USER ? "chat-message chat-message-user" : "chat-message"}
      style={colourOf(sender)}
      data-number={message.number}
    >
      <header className="chat-message-head">
        <Sender sender={sender} />
        <span className="quiet">
          <At at={createdAt} />
        </span>
      </header>
      {taskId !== null && <Thoughts taskId={taskId} stream={null} />}
      <Markdown text={text} mentions={mentions} />
      <Attachments parts={message.parts} />
    </article>
  );
}

/** What a member says: being written, then said. It is laid out alike, so that nothing moves between. */
function AnswerCell({ answer, mentions }: { answer: Answer; mentions: readonly string[] }) {
  const { agentId, taskId, message } = answer;
  const isSaid = message !== null;
  const stream = useLastStream(taskId, isSaid);
  const doing = useWorld(useShallow((world) => (isSaid ? null : doingOf(world, agentId, taskId))));
  const text = message?.text ?? (stream ? joinedFinal([...stream.earlier, stream]) : "");
  const isWriting = text !== "" && (doing === null || doing.kind === "works");
  return (
    <article
      className={message ? "chat-message" : "chat-message chat-message-open"}
      style={colourOf(agentId)}
      aria-busy={message === null}
      data-number={message?.number}
    >
      <header className="chat-message-head">
        <Sender sender={agentId} />
        <span className="quiet">
          {message !== null && <At at={message.createdAt} />}
          {isWriting && !isSaid && "is writing…"}
          {doing !== null && !isWriting && <Doing agentId={agentId} doing={doing} />}
        </span>
      </header>
      <Thoughts taskId={taskId} stream={message ? null : (stream ?? NOTHING_WRITTEN)} />
      {message || text !== "" ? (
        <Markdown text={text} mentions={mentions} isGrowing={message === null} />
      ) : (
        doing?.kind === "works" && (
          <p className="chat-dots" aria-hidden="true">
            <span />
            <span />
            <span />
          </p>
        )
      )}
    </article>
  );
}

/** What is being written in a task. It stays in sight between its step's end and its message. */
function useLastStream(taskId: string, isSaid: boolean): Stream | undefined {
  const isPast = useIsPast();
  const stream = usePage((page) => (isSaid || isPast ? undefined : streamOf(page.streams, taskId)));
  const last = useRef(stream);
  const isBetweenSteps = stream?.stepId === "" && last.current?.taskId === stream.taskId;
  if (stream !== undefined && !isBetweenSteps) last.current = stream;
  return isPast ? undefined : last.current;
}

/** Somebody who was asked and left no message. In the past only if that was certain then. */
function Silent({ answer: { agentId, taskId }, ending }: { answer: Answer; ending: Ending | undefined }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const name = useName(agentId);
  const to = useAddress();
  const [found, setFound] = useState<Ending | null>(null);
  useEffect(() => {
    if (ending !== undefined) return;
    let isWanted = true;
    endingOf(sessionId, taskId).then(
      (known) => isWanted && setFound(known),
      () => {}, // the line then says no more than that there is no answer
    );
    return () => {
      isWanted = false;
    };
  }, [sessionId, taskId, ending]);
  const past = usePage((page) => page.playhead?.world.at);
  const shown = ending ?? found;
  // Then it may have been about to be asked, or to answer. What ended at that very moment is told after it.
  if (past !== undefined && (shown === null || shown.at >= past)) return null;
  const page = `${to("agents", agentId)}?task=${encodeURIComponent(taskId)}`;
  if (shown?.kind === "passed" || shown?.kind === "joined")
    return (
      <p className="chat-line">
        <bdi>{name}</bdi>{" "}
        {shown.kind === "passed" ? "had nothing to add." : "heard it and answers it with the one before."}
      </p>
    );
  return (
    <p className={shown === null ? "chat-line" : "chat-line chat-line-bad"}>
      <bdi>{name}</bdi> did not answer{shown === null ? "." : `: ${shown.error.message} `}
      {shown !== null && <Link href={page}>See its task</Link>}
    </p>
  );
}

function NotAsked({ message, hopLimit, known }: { message: MessageRecord; hopLimit: number; known: Known }) {
  const { isAtLimit, absent } = notAsked(message, hopLimit, known.absent.get(message.number));
  return (
    <>
      {isAtLimit && (
        <p className="chat-line">
          Nobody was asked: {hopLimit} answers of agents in a row may ask others, and these were more. Write something
          to let them continue.
        </p>
      )}
      {absent.map(({ agentId, reason }) => (
        <Absent key={agentId} agentId={agentId} reason={reason} />
      ))}
    </>
  );
}

const REASONS: Record<string, string> = {
  stopped: "it is stopped",
  busy: "too many of its turns wait already",
  queue_full: "its queue is full",
};

function Absent({ agentId, reason }: { agentId: string; reason: string }) {
  const name = useName(agentId);
  const to = useAddress();
  return (
    <p className="chat-line">
      <Link href={to("agents", agentId)}>
        <bdi>{name}</bdi>
      </Link>{" "}
      was not asked{reason === "" ? "." : `: ${REASONS[reason] ?? reason}.`}
    </p>
  );
}
