import type { Notification, TaskRecord } from "../../client/client";

/** A task in the tree of what caused what, with how deep it lies. */
export interface Branch {
  readonly task: TaskRecord;
  readonly depth: number;
}

/** The tasks as an indented list, each below the one that caused it. None is left out, and none comes twice. */
export function branches(tasks: readonly TaskRecord[]): Branch[] {
  const known = new Map(tasks.map((task) => [task.taskId, task]));
  const children = new Map<string | null, TaskRecord[]>();
  for (const task of tasks) {
    const parent = task.parentId !== null && known.has(task.parentId) ? task.parentId : null;
    children.set(parent, [...(children.get(parent) ?? []), task]);
  }
  const found: Branch[] = [];
  const waiting = (children.get(null) ?? []).map((task) => ({ task, depth: 0 })).reverse();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { task, depth } = next;
    found.push(next);
    const below = (children.get(task.taskId) ?? []).map((child) => ({ task: child, depth: depth + 1 }));
    waiting.push(...below.reverse());
  }
  return found;
}

/** Whether something in it can still be cancelled. */
export function isOpen(task: Pick<TaskRecord, "state">): boolean {
  return task.state === "queued" || task.state === "running";
}

export function canRetry(task: Pick<TaskRecord, "state">): boolean {
  return task.state === "failed" || task.state === "cancelled" || task.state === "dead";
}

/** Whether the notification may have changed the tree: one of its tasks went on, or there is a new task somewhere. */
export function changesTree(note: Notification, tree: readonly TaskRecord[]): boolean {
  if (!note.name.startsWith("async.task.")) return false;
  if (note.name === "async.task.delta" || note.name === "async.task.progress") return false;
  if (note.name === "async.task.queued") return tree.some(isOpen);
  const { taskId } = note.params as { taskId: string };
  return tree.some((task) => task.taskId === taskId);
}
