import type { Priority, TaskKind, TaskRecord, TaskState } from "../../client/client";
import { allAsOf, taskAsOf } from "../../history/asOf";
import { isMark } from "../../parts/marks";
import type { Task } from "../../projection/world";

/** A task as it is listed: from the server's record, from what the log told since, or from both. */
export interface TaskRow {
  readonly taskId: string;
  readonly kind: TaskKind;
  readonly state: TaskState;
  readonly priority: Priority;
  readonly threadId: string;
  readonly title: string;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly progressPercent: number | null;
  readonly progressNote: string;
  /** Null while the server has not told yet. */
  readonly record: TaskRecord | null;
}

interface Listing {
  readonly agentId: string;
  /** Only those in this state; all if empty. */
  readonly state: string;
  /** Up to when: `Infinity` while the page is live. */
  readonly at: number;
  readonly limit: number;
}

/** The tasks of an agent, the newest first. */
export function taskRows(
  records: readonly TaskRecord[],
  open: ReadonlyMap<string, Task>,
  { agentId, state, at, limit }: Listing,
): TaskRow[] {
  const rows = new Map<string, TaskRow>();
  for (const record of allAsOf(records, at, taskAsOf)) rows.set(record.taskId, fromRecord(record));
  for (const task of open.values()) {
    if (task.agentId !== agentId) continue;
    const known = rows.get(task.taskId);
    rows.set(task.taskId, known === undefined ? fromWorld(task) : withProgress(known, task));
  }
  return [...rows.values()]
    .filter((row) => state === "" || row.state === state)
    .sort((one, other) => other.createdAt - one.createdAt)
    .slice(0, limit);
}

function fromRecord(record: TaskRecord): TaskRow {
  return { ...record, title: titleOf(record.kind, record.prompt), record };
}

function fromWorld(task: Task): TaskRow {
  const { queuedAt: createdAt, summary, kind } = task;
  return { ...task, title: titleOf(kind, summary), createdAt, finishedAt: null, record: null };
}

/** The log is quicker than the list: what it tells of a task that has not ended counts. */
function withProgress(row: TaskRow, task: Task): TaskRow {
  if (row.finishedAt !== null) return row;
  const { state, startedAt, progressPercent, progressNote } = task;
  return { ...row, state, startedAt, progressPercent, progressNote };
}

const TITLE_CHARACTERS = 200;

/**
 * What a task is about, in a line. Of a mail that is its subject and who wrote it; the first line of a delegated task
 * says who delegated it, as its place in the tree does.
 */
export function titleOf(kind: TaskKind, prompt: string): string {
  const beginning = prompt.slice(0, 2_000);
  if (kind === "mailbox_message") {
    const subject = /^Subject: (.+)$/m.exec(beginning)?.[1];
    const sender = /^From: (.+)$/m.exec(beginning)?.[1];
    if (subject && sender) return `${sender}: ${subject}`.slice(0, TITLE_CHARACTERS);
  }
  const lines = beginning.split("\n").filter((line) => line.trim() !== "" && !isMark(line));
  const [first = "", second] = lines;
  const line = kind === "delegated_task" && second !== undefined ? second : first;
  return line.trim().slice(0, TITLE_CHARACTERS);
}
