import type { Draft } from "./draft";
import type { Wait } from "./world";

/** Let somebody wait. Whatever was waited for under this key before is not waited for any more. */
export function beginWait(draft: Draft, key: string, wait: Wait): void {
  endWait(draft, key);
  draft.set("waits", key, wait);
  if (wait.kind === "lock") {
    draft.set("lockQueues", wait.target, [...(draft.get("lockQueues", wait.target) ?? []), key]);
  }
  const task = wait.taskId === null ? undefined : draft.get("tasks", wait.taskId);
  if (task === undefined) return;
  draft.change("tasks", task.taskId, { waits: [...task.waits, key] });
  showWaits(draft, task.agentId);
}

/** Nothing happens if nobody waits under this key. */
export function endWait(draft: Draft, key: string): void {
  const wait = draft.get("waits", key);
  if (wait === undefined) return;
  draft.delete("waits", key);
  if (wait.kind === "lock") {
    const queue = draft.get("lockQueues", wait.target)?.filter((each) => each !== key) ?? [];
    if (queue.length > 0) draft.set("lockQueues", wait.target, queue);
    else draft.delete("lockQueues", wait.target);
  }
  const task = wait.taskId === null ? undefined : draft.get("tasks", wait.taskId);
  if (task === undefined) return;
  draft.change("tasks", task.taskId, { waits: task.waits.filter((each) => each !== key) });
  showWaits(draft, task.agentId);
}

/** The lock has another holder: those who wait for it wait for that one now. */
export function passOn(draft: Draft, lock: string, holder: string): void {
  for (const key of draft.get("lockQueues", lock) ?? []) draft.change("waits", key, { holders: [holder] });
}

/** What an agent waits for is what its tasks wait for, that first which has run longest. */
function showWaits(draft: Draft, agentId: string): void {
  const agent = draft.get("agents", agentId);
  if (agent === undefined) return;
  const waitingFor: string[] = [];
  const pausedFor = new Set<string>();
  for (const taskId of agent.runningTasks) {
    for (const key of draft.get("tasks", taskId)?.waits ?? []) {
      const wait = draft.get("waits", key);
      if (wait?.kind === "resource") for (const resource of wait.targets) pausedFor.add(resource);
      else if (wait !== undefined) waitingFor.push(wait.kind === "reply" ? wait.target : `${wait.kind}:${wait.target}`);
    }
  }
  draft.change("agents", agentId, { waitingFor, pausedFor: [...pausedFor] });
}
