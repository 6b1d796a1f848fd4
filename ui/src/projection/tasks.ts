import type { NotificationOf } from "../client/client";
import { wasActive } from "./agents";
import type { Draft } from "./draft";
import { link } from "./links";
import type { Changes } from "./reduce";
import { endWait } from "./waits";
import type { Spent, Task } from "./world";

const NEW_TASK = {
  state: "queued",
  attempt: 0,
  progressPercent: null,
  progressNote: "",
  startedAt: null,
  lastStepAt: null,
  steps: new Map(),
  waits: [],
} as const;

/** What becomes of tasks and their steps. */
export const TASKS: Changes = {
  "async.task.queued": queued,
  "async.task.started": started,
  "async.task.progress": (draft, { params: { agentId, taskId, percent, note } }) => {
    draft.change("tasks", taskId, { progressPercent: percent, progressNote: note });
    showWork(draft, agentId);
  },
  "async.task.restarting": (draft, { params: { taskId, restarts } }) => {
    draft.change("tasks", taskId, { attempt: restarts + 1 });
  },
  "async.task.completed": end,
  "async.task.continuation": (draft, note) => {
    for (const name of note.params.locks ?? []) draft.change("locks", name, { taskId: note.params.continuationId });
    end(draft, note);
  },
  "async.task.error": (draft, note) => {
    countDead(draft, note.params.agentId, 1);
    end(draft, note);
  },
  "async.task.joined": end,
  "async.task.cancelled": end,
  "async.task.dismissed": (draft, { params }) => countDead(draft, params.agentId, -1),
  "step.started": (draft, { at, params: { agentId, taskId, stepId, kind, tool, startedAt } }) => {
    if (draft.get("waits", stepId)?.kind === "resource") endWait(draft, stepId); // it has its turn, or needs none
    const task = draft.get("tasks", taskId);
    if (task === undefined) return;
    const known = task.steps.get(stepId);
    const step = { stepId, kind, tool: tool ?? null, startedAt: startedAt ?? at, retryAt: null, retryReason: "" };
    draft.change("tasks", taskId, { steps: new Map(task.steps).set(stepId, step) });
    if (known !== undefined && known.retryAt !== null) showWork(draft, agentId);
  },
  "step.retried": (draft, { params: { agentId, taskId, stepId, requests, retryAt, error } }) => {
    spend(draft, agentId, { modelCalls: requests ?? 1 });
    const task = draft.get("tasks", taskId);
    const step = task?.steps.get(stepId);
    if (task === undefined || step === undefined) return;
    draft.change("tasks", taskId, {
      steps: new Map(task.steps).set(stepId, { ...step, retryAt, retryReason: error.message }),
    });
    showWork(draft, agentId);
  },
  "step.interrupted": (draft, { params: { agentId } }) => spend(draft, agentId, { modelCalls: 1 }),
  "step.finished": finished,
};

function queued(draft: Draft, { at, params }: NotificationOf<"async.task.queued">): void {
  const { agentId, taskId, threadId, kind, priority, summary, mailId = null, by, again } = params;
  const { state, createdAt = at, dismissed = false, ...before } = again ?? {};
  draft.set("tasks", taskId, {
    ...{ ...NEW_TASK, taskId, agentId, threadId, kind, priority, summary, mailId },
    ...{ ...before, queuedAt: createdAt },
  });
  if (!dismissed && (state === "failed" || state === "dead")) countDead(draft, agentId, -1);
  const agent = draft.get("agents", agentId);
  if (agent) draft.change("agents", agentId, { queueSize: agent.queueSize + 1 });
  if (by !== undefined) link(draft, by, agentId, kind === "delegated_task" ? "delegation" : "event", at);
}

/** A task failed and waits for a person, or does not any more. */
function countDead(draft: Draft, agentId: string, more: number): void {
  draft.deadTasks += more;
  const agent = draft.get("agents", agentId);
  if (agent) draft.change("agents", agentId, { deadTasks: agent.deadTasks + more });
}

function started(draft: Draft, { at, params }: NotificationOf<"async.task.started">): void {
  const { agentId, taskId, threadId, kind, mailId, priority = "normal", summary = "" } = params;
  const known = draft.get("tasks", taskId);
  if (known?.state === "running") return; // the server was started anew, and it goes on
  const mail = { ...NEW_TASK, taskId, agentId, threadId, kind, mailId, priority, summary, queuedAt: at };
  draft.set("tasks", taskId, { ...mail, ...known, state: "running", attempt: 1, startedAt: at });
  const agent = draft.get("agents", agentId);
  if (agent === undefined) return;
  draft.change("agents", agentId, {
    runningTasks: inOrder(draft, [...agent.runningTasks, taskId]),
    queueSize: agent.queueSize - (known === undefined ? 0 : 1),
    tasks: agent.tasks + (known?.startedAt == null ? 1 : 0),
  });
  wasActive(draft, agentId, at);
  showWork(draft, agentId);
}

function finished(draft: Draft, { at, params }: NotificationOf<"step.finished">): void {
  const { agentId, taskId, stepId, kind, usage, requests } = params;
  endWait(draft, stepId);
  const task = draft.get("tasks", taskId);
  if (task !== undefined) {
    const steps = new Map(task.steps);
    steps.delete(stepId);
    const lastStepAt = Math.max(task.lastStepAt ?? at, at);
    draft.change("tasks", taskId, { steps, ...(task.state === "running" ? { lastStepAt } : {}) });
  }
  spend(draft, agentId, kind === "tool" ? { toolCalls: 1 } : { modelCalls: requests ?? 1, ...usage });
  if (task?.state === "running") {
    wasActive(draft, agentId, at);
    showWork(draft, agentId);
  }
}

function spend(draft: Draft, agentId: string, more: Partial<Spent>): void {
  const agent = draft.get("agents", agentId);
  if (agent === undefined) return;
  const { inputTokens, outputTokens, costUsd, modelCalls, toolCalls } = agent.usage;
  const cost = more.costUsd ?? null;
  draft.change("agents", agentId, {
    usage: {
      inputTokens: inputTokens + (more.inputTokens ?? 0),
      outputTokens: outputTokens + (more.outputTokens ?? 0),
      costUsd: cost === null ? costUsd : (costUsd ?? 0) + cost,
      modelCalls: modelCalls + (more.modelCalls ?? 0),
      toolCalls: toolCalls + (more.toolCalls ?? 0),
    },
  });
}

function end(draft: Draft, { at, params }: { at: number; params: { agentId: string; taskId: string } }): void {
  const { agentId, taskId } = params;
  const task = draft.get("tasks", taskId);
  for (const key of task?.waits ?? []) endWait(draft, key);
  draft.delete("tasks", taskId);
  const agent = draft.get("agents", agentId);
  if (agent === undefined) return;
  draft.change("agents", agentId, {
    runningTasks: agent.runningTasks.filter((id) => id !== taskId),
    queueSize: agent.queueSize - (task?.state === "queued" ? 1 : 0),
  });
  wasActive(draft, agentId, at);
  showWork(draft, agentId);
}

/** The tasks that run, that first which has run longest. */
function inOrder(draft: Draft, taskIds: string[]): string[] {
  const since = (id: string): number => draft.get("tasks", id)?.startedAt ?? 0;
  return taskIds.sort((one, other) => since(one) - since(other) || (one < other ? -1 : 1));
}

/** What an agent is seen to do is what the task does that has run longest. */
function showWork(draft: Draft, agentId: string): void {
  const [oldest] = draft.get("agents", agentId)?.runningTasks ?? [];
  const task: Task | undefined = oldest === undefined ? undefined : draft.get("tasks", oldest);
  const waiting = [...(task?.steps.values() ?? [])].find((step) => step.retryAt !== null);
  draft.change("agents", agentId, {
    currentTask: task?.kind ?? null,
    progressPercent: task?.progressPercent ?? null,
    progressNote: task?.progressNote ?? "",
    runningSince: task?.startedAt ?? null,
    lastStepAt: task?.lastStepAt ?? null,
    retryAt: waiting?.retryAt ?? null,
    retryReason: waiting?.retryReason ?? "",
  });
}
