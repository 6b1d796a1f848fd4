import type { Draft } from "./draft";
import type { Changes } from "./reduce";
import type { Agent, Task } from "./world";

/** What becomes of tasks and their steps. */
export const TASKS: Changes = {
  "async.task.queued": (draft, { at, params: { agentId, ...params } }) => {
    draft.set("tasks", params.taskId, {
      ...params,
      agentId,
      state: "queued",
      attempt: 0,
      mailId: null,
      progressPercent: null,
      progressNote: "",
      queuedAt: at,
      startedAt: null,
      steps: new Map(),
    });
    const agent = draft.get("agents", agentId);
    if (agent) draft.change("agents", agentId, { queueSize: agent.queueSize + 1 });
  },
  "async.task.started": (draft, { at, params }) => {
    const { agentId, taskId, threadId, kind, attempt, mailId } = params;
    const known = draft.get("tasks", taskId);
    draft.set("tasks", taskId, {
      priority: "normal",
      summary: "",
      progressPercent: null,
      progressNote: "",
      queuedAt: at,
      ...known,
      ...{ taskId, agentId, threadId, kind, attempt, mailId, state: "running", startedAt: at, steps: new Map() },
    });
    const agent = draft.get("agents", agentId);
    if (agent === undefined) return;
    const runningTasks = [...agent.runningTasks.filter((id) => id !== taskId), taskId];
    const queueSize = known === undefined || known.state === "running" ? agent.queueSize : agent.queueSize - 1;
    draft.change("agents", agentId, { runningTasks, queueSize, tasks: agent.tasks + (attempt === 1 ? 1 : 0) });
    showWork(draft, agentId);
  },
  "async.task.progress": (draft, { params: { agentId, taskId, percent, note } }) => {
    draft.change("tasks", taskId, { progressPercent: percent, progressNote: note });
    showWork(draft, agentId);
  },
  "async.task.completed": (draft, { params }) => end(draft, params),
  "async.task.continuation": (draft, { params }) => end(draft, params),
  "async.task.error": (draft, { params }) => {
    if (params.state === "dead") draft.deadTasks += 1;
    end(draft, params);
  },
  "async.task.cancelled": (draft, { params }) => end(draft, params),
  "step.started": (draft, { at, params: { taskId, stepId, kind, tool } }) => {
    const task = draft.get("tasks", taskId);
    if (task === undefined) return;
    const steps = new Map(task.steps).set(stepId, { stepId, kind, tool: tool ?? null, startedAt: at });
    draft.change("tasks", taskId, { steps });
  },
  "step.finished": (draft, { at, params: { agentId, taskId, stepId, kind, usage } }) => {
    const task = draft.get("tasks", taskId);
    if (task !== undefined) {
      const steps = new Map(task.steps);
      steps.delete(stepId);
      draft.change("tasks", taskId, { steps });
    }
    const agent = draft.get("agents", agentId);
    if (agent === undefined) return;
    const { usage: before } = agent;
    const cost = usage?.costUsd ?? null;
    draft.change("agents", agentId, {
      lastStepAt: at,
      usage: {
        inputTokens: before.inputTokens + (usage?.inputTokens ?? 0),
        outputTokens: before.outputTokens + (usage?.outputTokens ?? 0),
        costUsd: cost === null ? before.costUsd : (before.costUsd ?? 0) + cost,
        modelCalls: before.modelCalls + (kind === "model" ? 1 : 0),
        toolCalls: before.toolCalls + (kind === "tool" ? 1 : 0),
      },
    });
  },
};

function end(draft: Draft, { agentId, taskId }: { agentId: string; taskId: string }): void {
  const task = draft.get("tasks", taskId);
  draft.delete("tasks", taskId);
  const agent = draft.get("agents", agentId);
  if (agent === undefined) return;
  const wasQueued = task?.state === "queued";
  draft.change("agents", agentId, {
    runningTasks: agent.runningTasks.filter((id) => id !== taskId),
    queueSize: agent.queueSize - (wasQueued ? 1 : 0),
  });
  showWork(draft, agentId);
}

/** What an agent is seen to do is what the task does that has run longest. */
function showWork(draft: Draft, agentId: string): void {
  const agent = draft.get("agents", agentId) as Agent | undefined;
  const [oldest] = agent?.runningTasks ?? [];
  const task: Task | undefined = oldest === undefined ? undefined : draft.get("tasks", oldest);
  draft.change("agents", agentId, {
    currentTask: task?.kind ?? null,
    progressPercent: task?.progressPercent ?? null,
    progressNote: task?.progressNote ?? "",
    runningSince: task?.startedAt ?? null,
  });
}
