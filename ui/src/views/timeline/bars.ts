import type { Notification, NotificationName, NotificationOf, StepKind } from "../../client/client";
import { words } from "../../parts/format";
import { type Waited, waitedFor } from "../../parts/waited";
import type { World } from "../../projection/world";
import { ARROW_OF, type Bar, type Chart, ChartDraft, NO_CHART, type Origin } from "./chart";

type Changes = { [N in NotificationName]?: (draft: ChartDraft, note: NotificationOf<N>) => void };

const LONGEST_LABEL = 80;

/** An empty chart, but for what went on in this world. */
export function chartFrom(world: World): Chart {
  const draft = new ChartDraft(NO_CHART, world.seq, world.at);
  const common = { isCut: false, seq: 0 };
  for (const { taskId, agentId, kind, attempt, summary, startedAt, state, steps } of world.tasks.values()) {
    draft.summaries.set(taskId, shortened(summary));
    if (state !== "running") continue;
    const start = startedAt ?? world.at;
    const label = shortened(summary) || words(kind);
    const loop = beginLoop(draft, { ...common, agentId, taskId, label, start, attempt });
    for (const step of steps.values()) {
      const { stepId, tool, kind: doing, startedAt: since } = step;
      const bar = {
        ...common,
        id: `step:${stepId}`,
        kind: barOf(doing),
        agentId,
        taskId,
        parent: loop.id,
        start: since,
      };
      draft.begin(`step:${stepId}`, { ...bar, label: tool ?? "model" });
    }
  }
  for (const [key, { kind, agentId, taskId, target, since }] of world.waits) {
    if (agentId === null) continue;
    const parent = (taskId !== null && draft.loops.get(taskId)) || null;
    const bar = { ...common, id: `wait:${key}`, kind: "wait" as const, agentId, taskId, parent, start: since };
    draft.begin(`wait:${key}`, { ...bar, label: waitLabel({ kind, target }, world.approvals.get(key)?.tool) });
  }
  for (const { agentId, state } of world.agents.values()) {
    beginRest(draft, { agentId, state, at: world.at, seq: 0 });
  }
  return draft.done();
}

/** The chart after these notifications as well; they have to follow those that it has. */
export function extended(chart: Chart, notes: Iterable<Notification>): Chart {
  const draft = new ChartDraft(chart);
  for (const note of notes) {
    if (note.seq <= draft.seq) continue;
    const change = CHANGES[note.name] as ((draft: ChartDraft, note: Notification) => void) | undefined;
    change?.(draft, note);
    draft.seq = note.seq;
    draft.at = note.at;
  }
  return draft.done();
}

const CHANGES: Changes = {
  "agent.state_changed": (draft, { at, seq, params: { agentId, from, to } }) => {
    if (from === to) return;
    draft.end(`rest:${agentId}`, at, to);
    beginRest(draft, { agentId, state: to, at, seq });
  },
  "async.task.queued": (draft, { at, cause, params: { taskId, kind, summary } }) => {
    draft.summaries.set(taskId, shortened(summary));
    const from = causeOf(draft, cause);
    const arrow = ARROW_OF[kind];
    if (from !== undefined && arrow !== undefined) {
      draft.origins.set(`task:${taskId}`, { kind: arrow, label: shortened(summary), from, at });
    }
  },
  "async.task.started": (draft, { at, seq, params: { agentId, taskId, kind, attempt, mailId } }) => {
    draft.end(`task:${taskId}`, at, "interrupted");
    const earlier = earlierAttempt(draft, taskId, attempt);
    const mail = mailId === null ? undefined : draft.origins.get(`mail:${mailId}`);
    const label = draft.summaries.get(taskId) || mail?.label || words(kind);
    const loop = beginLoop(draft, { isCut: false, agentId, taskId, label, start: at, attempt, seq });
    draft.arrow(`start:${loop.id}`, earlier ?? mail ?? draft.origins.get(`task:${taskId}`), loop.id, at);
  },
  "async.task.completed": (draft, { at, params: { taskId } }) => ended(draft, taskId, at, "completed"),
  "async.task.continuation": (draft, { at, params: { taskId, continuationId } }) => {
    const from = draft.loops.get(taskId);
    const label = draft.summaries.get(taskId) ?? "";
    if (from !== undefined) draft.origins.set(`task:${continuationId}`, { kind: "continuation", label, from, at });
    ended(draft, taskId, at, "continued");
  },
  "async.task.error": (draft, { at, params: { taskId, state } }) => ended(draft, taskId, at, state),
  "async.task.cancelled": (draft, { at, params: { taskId } }) => ended(draft, taskId, at, "cancelled"),
  "async.task.restarting": (draft, { at, params: { taskId } }) => ended(draft, taskId, at, "restarting"),
  "step.started": (draft, note) => beginStep(draft, note),
  "step.finished": (draft, note) => {
    const { at, params } = note;
    const outcome = params.isError ? "failed" : params.state;
    if (draft.end(`step:${params.stepId}`, at, outcome)) return;
    beginStep(draft, note); // so short a call is told of once
    draft.end(`step:${params.stepId}`, at, outcome);
  },
  "mail.sent": (draft, { at, cause, params: { mailId, subject } }) => {
    const from = causeOf(draft, cause);
    if (from !== undefined) draft.origins.set(`mail:${mailId}`, { kind: "mail", label: subject, from, at });
  },
  "switch.began": (draft, { at, seq, params: { agentId, taskId, stepId, toAgent, mailId } }) => {
    const mail = draft.origins.get(`mail:${mailId}`);
    if (mail !== undefined) draft.origins.set(`mail:${mailId}`, { ...mail, kind: "switch" });
    beginWait(draft, { key: stepId, agentId, taskId, label: waitLabel({ kind: "reply", target: toAgent }), at, seq });
  },
  "switch.ended": (draft, { at, params: { taskId, stepId, outcome, replyId } }) => {
    draft.end(`wait:${stepId}`, at, outcome);
    const reply = replyId === undefined ? undefined : draft.origins.get(`mail:${replyId}`);
    const origin: Origin | undefined = reply && { ...reply, kind: "reply" };
    draft.arrow(`reply:${stepId}`, origin, draft.loops.get(taskId), at);
  },
  "lock.waiting": (draft, { at, seq, params: { agentId, taskId, stepId, waiter, name } }) => {
    if (agentId === null) return;
    const key = stepId ?? `${waiter}\n${name}`;
    beginWait(draft, { key, agentId, taskId, label: waitLabel({ kind: "lock", target: name }), at, seq });
  },
  "lock.wait_ended": (draft, { at, params: { stepId, waiter, name, outcome } }) => {
    draft.end(`wait:${stepId ?? `${waiter}\n${name}`}`, at, outcome);
  },
  "approval.requested": (draft, { at, seq, params: { agentId, taskId, approvalId, tool } }) => {
    beginWait(draft, {
      key: approvalId,
      agentId,
      taskId,
      label: waitLabel({ kind: "approval", target: approvalId }, tool),
      at,
      seq,
    });
  },
  "approval.approved": (draft, { at, params }) => void draft.end(`wait:${params.approvalId}`, at, "approved"),
  "approval.refused": (draft, { at, params }) => void draft.end(`wait:${params.approvalId}`, at, "refused"),
  "approval.withdrawn": (draft, { at, params }) => void draft.end(`wait:${params.approvalId}`, at, "withdrawn"),
  "question.asked": (draft, { at, seq, params: { agentId, taskId, questionId } }) => {
    const label = waitLabel({ kind: "question", target: questionId });
    beginWait(draft, { key: questionId, agentId, taskId, label, at, seq });
  },
  "question.answered": (draft, { at, params }) => void draft.end(`wait:${params.questionId}`, at, "answered"),
  "question.refused": (draft, { at, params }) => void draft.end(`wait:${params.questionId}`, at, "refused"),
  "question.withdrawn": (draft, { at, params }) => void draft.end(`wait:${params.questionId}`, at, params.state),
  "resource.waiting": (draft, { at, seq, params: { agentId, taskId, stepId, resources } }) => {
    const label = waitLabel({ kind: "resource", target: resources.join(", ") });
    beginWait(draft, { key: stepId, agentId, taskId, label, at, seq });
  },
  "resource.granted": (draft, { at, params }) => void draft.end(`wait:${params.stepId}`, at, "granted"),
  "room.message": (draft, { at, params: { roomId, number, taskId, text } }) => {
    const from = taskId === null ? undefined : draft.loops.get(taskId);
    if (from === undefined) return;
    draft.origins.set(`said:${roomId}\n${number}`, { kind: "room", label: shortened(text), from, at });
  },
  "room.answering": (draft, { at, params: { roomId, number, taskId } }) => {
    const said = draft.origins.get(`said:${roomId}\n${number}`);
    if (said === undefined) return;
    draft.origins.set(`task:${taskId}`, said);
    const loop = draft.loops.get(taskId);
    if (loop !== undefined) draft.arrow(`start:${loop}`, said, loop, at);
  },
};

function ended(draft: ChartDraft, taskId: string, at: number, outcome: string): void {
  draft.end(`task:${taskId}`, at, outcome);
}

type Begun = Pick<Bar, "agentId" | "label" | "start" | "isCut" | "seq"> & { taskId: string; attempt: number };

function beginLoop(draft: ChartDraft, { attempt, ...begun }: Begun): Bar {
  const id = attempt > 1 ? `task:${begun.taskId}#${attempt}` : `task:${begun.taskId}`;
  const loop = draft.begin(`task:${begun.taskId}`, { ...begun, id, kind: "task", parent: null });
  draft.loops.set(begun.taskId, loop.id);
  return loop;
}

/** A compaction is drawn as the request that it was to be. */
function barOf(kind: StepKind): "model" | "tool" {
  return kind === "tool" ? "tool" : "model";
}

function beginStep(draft: ChartDraft, note: NotificationOf<"step.started"> | NotificationOf<"step.finished">): void {
  const { agentId, taskId, stepId, kind, tool } = note.params;
  draft.end(`step:${stepId}`, note.at, "interrupted");
  draft.begin(`step:${stepId}`, {
    id: `step:${stepId}`,
    kind: barOf(kind),
    agentId,
    taskId,
    parent: draft.loops.get(taskId) ?? null,
    label: tool ?? "model",
    start: note.at,
    isCut: false,
    seq: note.seq,
  });
}

interface WaitBegun {
  key: string;
  agentId: string;
  taskId: string | null;
  label: string;
  at: number;
  seq: number;
}

function beginWait(draft: ChartDraft, { key, agentId, taskId, label, at, seq }: WaitBegun): void {
  draft.end(`wait:${key}`, at, "again");
  const parent = (taskId !== null && draft.loops.get(taskId)) || null;
  const bar = { id: `wait:${key}`, kind: "wait" as const, agentId, taskId, parent, label, start: at };
  draft.begin(`wait:${key}`, { ...bar, isCut: false, seq });
}

/** An agent that neither works nor waits for work. */
function beginRest(
  draft: ChartDraft,
  { agentId, state, at, seq }: { agentId: string; state: string; at: number; seq: number },
): void {
  if (state !== "sleeping" && state !== "paused") return;
  const kind = state === "sleeping" ? "sleep" : "pause";
  const bar = { id: `${kind}:${agentId}@${seq}`, kind, agentId, taskId: null, parent: null, label: state } as const;
  draft.begin(`rest:${agentId}`, { ...bar, start: at, isCut: seq === 0, seq });
}

/** A loop that begins again goes on from where it was before. */
function earlierAttempt(draft: ChartDraft, taskId: string, attempt: number): Origin | undefined {
  const from = draft.loops.get(taskId);
  if (from === undefined) return undefined;
  return { kind: "continuation", label: `attempt ${attempt}`, from, at: draft.bars.get(from)?.end ?? draft.at };
}

/** The loop that something was done in. */
function causeOf(draft: ChartDraft, cause: string): string | undefined {
  return cause.startsWith("task:") ? draft.loops.get(cause.slice(5)) : undefined;
}

/** Without who has what is waited for: that may change before the bar ends. */
function waitLabel(wait: Omit<Waited, "holders">, tool?: string): string {
  return `waits for ${waitedFor(wait)}${tool === undefined ? "" : `: ${tool}`}`;
}

function shortened(text: string): string {
  return text.slice(0, LONGEST_LABEL).replace(/\s+/g, " ").trim();
}
