import type { Notification } from "../client/client";

const STAYING = new Set(["async.task.delta", "async.task.progress"]);

/** Whether the notification says that there is another task of the agent, or that one is in another state. */
export function changesTasks(note: Notification, agentId: string): boolean {
  if (!note.name.startsWith("async.task.") || STAYING.has(note.name)) return false;
  return (note.params as { agentId: string }).agentId === agentId;
}

/** Whether it says something new of this task or of its steps. */
export function changesTask(note: Notification, taskId: string): boolean {
  if (note.name === "async.task.delta" || note.name === "step.output") return false;
  if (!note.name.startsWith("async.task.") && !note.name.startsWith("step.")) return false;
  return (note.params as { taskId: string }).taskId === taskId;
}
