import type { Draft } from "./draft";
import type { Changes } from "./reduce";
import type { OpenStep } from "./world";

/** What becomes of times when the wall clock of the server is set. */
export const CLOCK: Changes = {
  "clock.changed": (draft, { params }) => setClock(draft, params.clockOffsetSeconds),
};

/** The wall clock is so far ahead of the session's now: it shows something else at what lasts for a while. */
export function setClock(draft: Draft, offsetSeconds: number): void {
  const change = offsetSeconds - draft.clockOffsetSeconds;
  if (change === 0) return;
  draft.clockOffsetSeconds = offsetSeconds;
  for (const { agentId, sleepingUntil, sleepingByWallClock, retryAt } of draft.all("agents").values()) {
    if (sleepingUntil !== null && !sleepingByWallClock)
      draft.change("agents", agentId, { sleepingUntil: sleepingUntil + change });
    if (retryAt !== null) draft.change("agents", agentId, { retryAt: retryAt + change });
  }
  for (const { taskId, steps } of draft.all("tasks").values()) {
    if ([...steps.values()].some(({ retryAt }) => retryAt !== null))
      draft.change("tasks", taskId, { steps: new Map([...steps].map(([id, step]) => [id, later(step, change)])) });
  }
  for (const [key, { deadlineAt }] of draft.all("waits")) {
    if (deadlineAt !== null) draft.change("waits", key, { deadlineAt: deadlineAt + change });
  }
  for (const { name, expiresAt } of draft.all("locks").values())
    draft.change("locks", name, { expiresAt: expiresAt + change });
  for (const { scheduleId, cron, nextAt } of draft.all("schedules").values()) {
    if (cron === null && nextAt !== null) draft.change("schedules", scheduleId, { nextAt: nextAt + change });
  }
}

function later(step: OpenStep, seconds: number): OpenStep {
  return step.retryAt === null ? step : { ...step, retryAt: step.retryAt + seconds };
}
