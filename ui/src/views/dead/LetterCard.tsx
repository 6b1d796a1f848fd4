import { useState } from "react";
import { Link } from "wouter";
import type { TaskRecord } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { useActing } from "../../parts/acting";
import { Confirm } from "../../parts/Dialog";
import { words } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Problem } from "../../parts/Messages";
import { withoutMarks } from "../../parts/marks";
import { StateBadge } from "../../parts/StateBadge";
import { Ago } from "../../parts/Times";
import { useAddress } from "../../shell/addresses";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useIsPast, usePage } from "../../state/page";
import { canSettle, type Letter } from "./letters";

interface LetterCardProps {
  readonly letter: Letter;
  readonly isOpen: boolean;
  readonly isChosen: boolean;
  readonly isBusy: boolean;
  readonly onOpen: (isOpen: boolean) => void;
  readonly onChoose: () => void;
  readonly onRetry: () => void;
  readonly onDismiss: () => void;
}

/** One thing that could not be done, why, and what can be done about it. */
export function LetterCard(props: LetterCardProps) {
  const { letter, isOpen, isChosen, isBusy, onOpen, onChoose, onRetry, onDismiss } = props;
  const retrying = useActing("Resumes at the step where it ended; nothing that was finished is repeated");
  const dismissing = useActing("Takes it off this list; nothing is deleted");
  const isAble = !retrying.disabled && canSettle(letter) && !isBusy;
  return (
    <article className="card dead-card" aria-label={letter.title}>
      <header className="dead-head">
        <input
          type="checkbox"
          aria-label={`Choose ${letter.title}`}
          checked={isChosen}
          disabled={!canSettle(letter)}
          onChange={onChoose}
        />
        <h2 className="ellipsis" title={letter.title}>
          {letter.title || "(without a subject)"}
        </h2>
        <span className="space" />
        <span className="quiet">
          <Ago at={letter.at} />
        </span>
        <button type="button" {...retrying} disabled={!isAble} onClick={onRetry}>
          Retry
        </button>
        <button type="button" {...dismissing} disabled={!isAble} onClick={onDismiss}>
          Dismiss
        </button>
      </header>
      <p className="dead-why">{letter.why}</p>
      <p className="dead-facts quiet">
        <AgentLink agentId={letter.agentId} />
        {letter.task !== null && <StateBadge state={letter.task.state} />}
        {letter.task !== null && <span>{attempts(letter.task)}</span>}
        {letter.mail !== null && <span className="tag">mail from {letter.mail.sender}</span>}
        {letter.code && <span className="tag mono">{letter.code}</span>}
      </p>
      <details open={isOpen} onToggle={(event) => onOpen(event.currentTarget.open)}>
        <summary>What it was about</summary>
        {isOpen && <Details letter={letter} />}
      </details>
    </article>
  );
}

/** How often it was begun. A task that showed itself harmless is counted anew: that says nothing. */
function attempts({ attempts: count, restarts, kind }: Pick<TaskRecord, "attempts" | "restarts" | "kind">): string {
  const parts = [words(kind)];
  if (count > 0) parts.push(count === 1 ? "begun once" : `begun ${count} times`);
  if (restarts > 0) parts.push(restarts === 1 ? "crashed once" : `crashed ${restarts} times`);
  return parts.join(", ");
}

function Details({ letter: { id, agentId, task, mail } }: { letter: Letter }) {
  const address = useAddress();
  return (
    <div className="dead-details">
      <LongText text={mail?.body ?? withoutMarks(task?.prompt ?? "")} />
      <p className="dead-facts">
        {task !== null && <Link href={`${address("agents", agentId)}?task=${encodeURIComponent(id)}`}>Its task</Link>}
        {mail !== null && (
          <Link href={`${address("agents", agentId)}?tab=mail&mail=${encodeURIComponent(mail.mailId)}`}>Its mail</Link>
        )}
      </p>
      {task !== null && <Caused taskId={id} />}
    </div>
  );
}

/** What the task caused and is still at work: that can be ended, the task itself has. */
function Caused({ taskId }: { taskId: string }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isPast = useIsPast();
  const acting = useActing();
  const [isAsking, setIsAsking] = useState(false);
  const tree = useAnswer(
    "task.tree",
    isPast ? null : { sessionId, taskId },
    ({ name }) => name === "async.task.queued" || name === "async.task.completed" || name === "async.task.cancelled",
  );
  if (tree.error !== null) return <Problem error={tree.error} onRetry={tree.again} />;
  const parents = new Set([taskId]);
  const left = (tree.data?.tasks ?? []).filter((task) => {
    if (task.parentId === null || !parents.has(task.parentId)) return false;
    parents.add(task.taskId);
    return task.state === "queued" || task.state === "running";
  });
  if (left.length === 0) return null;
  const cancel = async (reason: string) => {
    const done = await act("task.cancelTree", { taskId, ...(reason === "" ? {} : { reason }) });
    if (done) notify(`${done.tasks.length} tasks were cancelled.`);
  };
  return (
    <div className="dead-facts">
      <span>
        {left.length === 1 ? "A task that it caused has" : `${left.length} tasks that it caused have`} not ended.
      </span>
      <button type="button" className="danger" {...acting} onClick={() => setIsAsking(true)}>
        Cancel them
      </button>
      {isAsking && (
        <Confirm
          title={`Cancel ${left.length} tasks?`}
          action="Cancel the tasks"
          reasonLabel="Why (the agents are told)"
          onConfirm={(reason) => void cancel(reason)}
          onClose={() => setIsAsking(false)}
        >
          All that this task caused ends, also what others do because of it.
        </Confirm>
      )}
    </div>
  );
}
