import type { MailRecord, StepRecord, TaskRecord } from "../client/client";

/**
 * What was asked of the server is told as it is now. These give it as it was at an earlier time, as far as its times
 * say so, and null if it was not there yet. With `Infinity` as the time everything stays as it is.
 */
export function taskAsOf(task: TaskRecord, at: number): TaskRecord | null {
  if (task.createdAt > at) return null;
  const isStarted = task.startedAt !== null && task.startedAt <= at;
  const isFinished = task.finishedAt !== null && task.finishedAt <= at;
  if (isFinished || at === Number.POSITIVE_INFINITY) return task;
  return {
    ...task,
    state: isStarted ? "running" : "queued",
    startedAt: isStarted ? task.startedAt : null,
    finishedAt: null,
    result: null,
    error: null,
    progressPercent: null,
    progressNote: "",
  };
}

export function stepAsOf(step: StepRecord, at: number): StepRecord | null {
  if (step.startedAt > at) return null;
  if (step.finishedAt === null || step.finishedAt <= at) return step;
  return { ...step, state: "started", finishedAt: null, answer: null, result: null, error: null, retryAt: null };
}

/** When it was answered, archived or given up is not kept: of the past it is read or not. */
export function mailAsOf(mail: MailRecord, at: number): MailRecord | null {
  if (mail.createdAt > at) return null;
  if (at === Number.POSITIVE_INFINITY) return mail;
  if (mail.readAt !== null && mail.readAt <= at) return { ...mail, state: "read" };
  return { ...mail, state: "queued", readAt: null, taskId: null };
}

/** Those that were there, as they were. */
export function allAsOf<Kind>(all: readonly Kind[], at: number, asOf: (one: Kind, at: number) => Kind | null): Kind[] {
  return all.map((one) => asOf(one, at)).filter((one) => one !== null);
}
