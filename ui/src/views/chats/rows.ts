import type { MessageRecord } from "../../client/client";

/** What a member says to a message: said already, or still being written. */
export interface Answer {
  readonly agentId: string;
  readonly taskId: string;
  readonly message: MessageRecord | null;
}

/** Something said, or what several members say to the same message: that stands side by side. */
export type Row =
  | { readonly kind: "message"; readonly key: string; readonly message: MessageRecord }
  | {
      readonly kind: "answers";
      readonly key: string;
      readonly question: number;
      readonly answers: readonly Answer[];
      /** Those who were asked, and neither answered nor are about to. */
      readonly silent: readonly Answer[];
    };

type AnswersRow = Extract<Row, { kind: "answers" }> & { answers: Answer[]; silent: Answer[] };

const UNKNOWN = 0;
/** How many answers to messages that are not loaded are shown at most: one who is never there may owe thousands. */
export const MOST_UNPLACED = 12;

/**
 * The rows of a transcript, in the order of the messages. Answers in a row to the same message share one, with those
 * that are still being written, so that a message appears where it was written.
 */
export function rowsOf(messages: readonly MessageRecord[], answering: ReadonlyMap<string, string>): Row[] {
  const rows = new Rows(messages);
  for (const message of messages) rows.add(message);
  const open = [...answering].map(([taskId, agentId]) => ({ agentId, taskId, message: null }));
  const unplaced = open.filter(({ taskId }) => !rows.isPlaced(taskId)).slice(-MOST_UNPLACED);
  for (const answer of unplaced) rows.addOpen(answer);
  for (const answer of open) if (rows.isPlaced(answer.taskId)) rows.addOpen(answer);
  rows.addSilent(messages, answering);
  return rows.sorted();
}

class Rows {
  #rows: (Row | AnswersRow)[] = [];
  readonly #questions = new Map<string, { number: number; place: number }>();
  readonly #keys = new Set<string>();
  readonly #answered = new Set<string>();

  constructor(messages: readonly MessageRecord[]) {
    for (const { asked, number } of messages) {
      Object.values(asked).forEach((taskId, place) => {
        this.#questions.set(taskId, { number, place });
      });
    }
  }

  /** Whether the message that it answers is among those that are loaded. */
  isPlaced(taskId: string): boolean {
    return this.#questions.has(taskId);
  }

  add(message: MessageRecord): void {
    const { taskId, number, sender } = message;
    if (taskId === null || !this.#questions.has(taskId)) {
      this.#rows.push({ kind: "message", key: `m${number}`, message });
      return;
    }
    this.#answered.add(taskId);
    this.#lastFor(taskId).answers.push({ agentId: sender, taskId, message });
  }

  addOpen(answer: Answer): void {
    if (!this.#answered.has(answer.taskId)) this.#lastFor(answer.taskId).answers.push(answer);
  }

  addSilent(messages: readonly MessageRecord[], answering: ReadonlyMap<string, string>): void {
    const silent = new Map<number, Answer[]>();
    for (const { asked, number } of messages) {
      const missing = Object.entries(asked).filter(
        ([, taskId]) => !answering.has(taskId) && !this.#answered.has(taskId),
      );
      if (missing.length === 0) continue;
      silent.set(
        number,
        missing.map(([agentId, taskId]) => ({ agentId, taskId, message: null })),
      );
    }
    if (silent.size === 0) return;
    for (const row of this.#rows) {
      if (row.kind !== "answers" || !silent.has(row.question)) continue;
      (row as AnswersRow).silent = silent.get(row.question) ?? [];
      silent.delete(row.question);
    }
    this.#rows = this.#rows.flatMap((row) => [row, ...this.#silentAfter(row, silent)]);
  }

  /** With the answers of a row in the order in which they were asked for. */
  sorted(): Row[] {
    const place = ({ taskId }: Answer) => this.#questions.get(taskId)?.place ?? 0;
    for (const row of this.#rows) {
      if (row.kind === "answers") (row as AnswersRow).answers.sort((one, other) => place(one) - place(other));
    }
    return this.#rows;
  }

  #lastFor(taskId: string): AnswersRow {
    const question = this.#questions.get(taskId)?.number ?? UNKNOWN;
    const last = this.#rows.at(-1);
    if (last?.kind === "answers" && last.question === question) return last as AnswersRow;
    const row = this.#answersRow(question);
    this.#rows.push(row);
    return row;
  }

  #silentAfter(row: Row, silent: ReadonlyMap<number, Answer[]>): AnswersRow[] {
    return numbers(row).flatMap((number) => {
      const answers = silent.get(number);
      return answers === undefined ? [] : [{ ...this.#answersRow(number), silent: answers }];
    });
  }

  #answersRow(question: number): AnswersRow {
    let key = `a${question}`;
    while (this.#keys.has(key)) key += "+";
    this.#keys.add(key);
    return { kind: "answers", key, question, answers: [], silent: [] };
  }
}

function numbers(row: Row): number[] {
  return row.kind === "message" ? [row.message.number] : row.answers.map(({ message }) => message?.number ?? -1);
}
