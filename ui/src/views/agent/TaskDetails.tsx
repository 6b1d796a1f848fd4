import { type ReactNode, useMemo, useRef, useState } from "react";
import type { Notification, TaskRecord } from "../../client/client";
import { allAsOf, taskAsOf } from "../../history/asOf";
import { Attachments } from "../../parts/Attachments";
import { useActing } from "../../parts/acting";
import { Confirm } from "../../parts/Dialog";
import { Fact } from "../../parts/Fact";
import { count, duration, money, words } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Markdown } from "../../parts/Markdown";
import { withoutMarks } from "../../parts/marks";
import { At, Until } from "../../parts/Times";
import { act, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { useHorizon } from "../../state/horizon";
import { usePage } from "../../state/page";
import { Folded } from "./Folded";
import { CauseLink, MailLink, TaskLink, ThreadLink } from "./links";
import { Steps } from "./Steps";
import { TaskTree } from "./TaskTree";
import type { TaskRow } from "./taskRows";
import { canRetry, changesTree, isOpen } from "./tree";
import { UsageFacts } from "./UsageFacts";

/** Everything about one task: what was asked, what it came from, what was done and what came of it. */
export function TaskDetails({ record, row }: { record: TaskRecord; row: Pick<TaskRow, "state"> }) {
  const task = { ...record, state: row.state };
  const at = useHorizon();
  const { tree, usage } = useTree(task);
  const shownTree = useMemo(() => (tree === undefined ? [] : allAsOf(tree, at, taskAsOf)), [tree, at]);
  const isPast = at !== Number.POSITIVE_INFINITY;
  return (
    <div className="agent-details">
      <Actions task={task} tree={shownTree} />
      <Facts task={task} tree={shownTree} />
      <Part title="Prompt">
        <LongText text={withoutMarks(task.prompt)} />
        <Attachments parts={task.parts} />
      </Part>
      <Result task={task} />
      {shownTree.length > 1 && (
        <Part title={`What it belongs to: a tree of ${shownTree.length} tasks`}>
          <TaskTree tasks={shownTree} shown={task.taskId} />
        </Part>
      )}
      <Part title="Steps">
        <Steps taskId={task.taskId} isRunning={task.state === "running"} />
      </Part>
      {!isPast && (
        <Part title="Used">
          <UsageFacts usage={task.usage} label="by the task itself" />
          {usage !== undefined && shownTree.length > 1 && (
            <UsageFacts usage={usage.total.usage} label="by all of its tree" />
          )}
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="agent-part">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** The tree of a task, and what it used together, asked anew when a task of it changes. */
function useTree(task: TaskRecord) {
  const params = { sessionId: usePage((page) => page.sessionId) ?? "", taskId: task.taskId };
  const known = useRef<readonly TaskRecord[]>([task]);
  const changes = (note: Notification) => changesTree(note, known.current);
  const tree = useAnswer("task.tree", params, changes).data?.tasks;
  known.current = tree ?? [task];
  return { tree, usage: useAnswer("usage.get", params, changes).data };
}

function Facts({ task, tree }: { task: TaskRecord; tree: readonly TaskRecord[] }) {
  const agentOf = (taskId: string | null) => tree.find((each) => each.taskId === taskId)?.agentId;
  const [causeKind = "", causeId = ""] = task.cause.split(/:(.*)/s);
  const causeAgent = causeKind === "task" ? agentOf(causeId) : undefined;
  const parentAgent = agentOf(task.parentId);
  const { origin } = task;
  return (
    <dl className="agent-dl">
      <Fact name="Id">
        <code>{task.taskId}</code>
      </Fact>
      <Fact name="Kind">{words(task.kind)}</Fact>
      <Fact name="Cause">
        <CauseLink cause={task.cause} agentId={task.agentId} {...(causeAgent ? { taskAgentId: causeAgent } : {})} />
      </Fact>
      {task.mailId !== null && (
        <Fact name="Mail">
          <MailLink owner={task.agentId} mailId={task.mailId} />
        </Fact>
      )}
      {task.parentId !== null && (
        <Fact name="Parent">
          {parentAgent ? <TaskLink agentId={parentAgent} taskId={task.parentId} /> : <code>{task.parentId}</code>}
          {parentAgent && parentAgent !== task.agentId && <span className="quiet"> of {parentAgent}</span>}
        </Fact>
      )}
      <Fact name="Thread">
        <ThreadLink agentId={task.agentId} threadId={task.threadId} />
      </Fact>
      <Fact name="Priority">{task.priority}</Fact>
      <Fact name="Given">
        <At at={task.createdAt} />
      </Fact>
      {task.startedAt !== null && (
        <Fact name="Began">
          <At at={task.startedAt} />
        </Fact>
      )}
      {task.finishedAt !== null && (
        <Fact name="Ended">
          <At at={task.finishedAt} />
          {task.startedAt !== null && (
            <span className="quiet"> after {duration(task.finishedAt - task.startedAt)}</span>
          )}
        </Fact>
      )}
      {task.attempts > 1 && <Fact name="Starts">{count(task.attempts)}</Fact>}
      {task.restarts > 0 && <Fact name="Crashes">{count(task.restarts)}</Fact>}
      {task.notBefore !== null && isOpen(task) && (
        <Fact name="Begins again">
          <Until at={task.notBefore} />
        </Fact>
      )}
      {origin?.deadlineAt != null && (
        <Fact name="Deadline">
          <At at={origin.deadlineAt} />
        </Fact>
      )}
      {origin?.budget != null && (
        <Fact name="Budget">
          {[
            origin.budget.maxTokens !== null && `${count(origin.budget.maxTokens)} tokens`,
            origin.budget.maxCostUsd !== null && money(origin.budget.maxCostUsd),
          ]
            .filter(Boolean)
            .join(", ")}
        </Fact>
      )}
    </dl>
  );
}

function Result({ task }: { task: TaskRecord }) {
  if (task.error !== null)
    return (
      <Part title="Error">
        <p className="agent-error">{task.error.message}</p>
        <p className="quiet">
          <code>{task.error.code}</code>
        </p>
      </Part>
    );
  if (task.result === null) return null;
  const { final, commentary, analysis, output } = task.result;
  const schema = task.origin?.outputSchema ?? null;
  return (
    <Part title="Result">
      {schema !== null && task.state === "completed" ? (
        <>
          <LongText text={JSON.stringify(output, null, 2)} mono />
          <Folded title="Schema" text={JSON.stringify(schema, null, 2)} mono />
        </>
      ) : final === "" ? (
        <p className="quiet">It said nothing in the end.</p>
      ) : (
        <Markdown text={final} />
      )}
      <Folded title="Commentary" text={commentary} />
      <Folded title="Analysis" text={analysis} />
    </Part>
  );
}

function Actions({ task, tree }: { task: TaskRecord; tree: readonly TaskRecord[] }) {
  const acting = useActing();
  const [asking, setAsking] = useState<"task.cancel" | "task.cancelTree" | null>(null);
  const canCancel = isOpen(task);
  const canCancelTree = tree.length > 1 && tree.some(isOpen);
  async function cancel(reason: string) {
    const params = { taskId: task.taskId, ...(reason === "" ? {} : { reason }) };
    if (asking === "task.cancelTree") {
      const cancelled = await act("task.cancelTree", params);
      if (cancelled) notify(`${cancelled.tasks.length} tasks were cancelled.`);
    } else await act("task.cancel", params);
  }
  if (!canCancel && !canCancelTree && !canRetry(task)) return null;
  return (
    <div className="agent-actions">
      {canRetry(task) && (
        <button type="button" {...acting} onClick={() => void act("task.retry", { taskId: task.taskId })}>
          Retry
        </button>
      )}
      {canCancel && (
        <button type="button" className="danger" {...acting} onClick={() => setAsking("task.cancel")}>
          Cancel
        </button>
      )}
      {canCancelTree && (
        <button type="button" className="danger" {...acting} onClick={() => setAsking("task.cancelTree")}>
          Cancel the whole tree
        </button>
      )}
      {asking !== null && (
        <Confirm
          title={asking === "task.cancel" ? "Cancel this task?" : "Cancel the whole tree?"}
          action={asking === "task.cancel" ? "Cancel the task" : "Cancel the tree"}
          reasonLabel="Reason (others see it)"
          onConfirm={(reason) => void cancel(reason.trim())}
          onClose={() => setAsking(null)}
        >
          {asking === "task.cancel"
            ? "What it runs is ended at once. It can be taken up again later."
            : `All tasks of the tree that have not ended are ended at once: ${tree.filter(isOpen).length} now.`}
        </Confirm>
      )}
    </div>
  );
}
