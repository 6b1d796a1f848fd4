import type { Notification } from "../client/client";

/** How many notifications a page holds: page 0 has those numbered 1 to 1,000. */
export const PAGE = 1_000;

const MOST_PAGES = 40;
const MOST_WEIGHT = 24_000_000;
/** What a notification weighs beside its texts. */
const BASE_WEIGHT = 400;

/** Reads the log: `limit` notifications at most, from the one after `after` on. */
export type Ask = (after: number, limit: number) => Promise<{ notifications: Notification[]; lastSeq: number }>;

interface Page {
  readonly notes: readonly Notification[];
  readonly weight: number;
}

export interface Bounds {
  readonly pages?: number;
  readonly weight?: number;
  /** The first notification that the log has: those before it were pruned. */
  readonly firstSeq?: number;
}

/** The page that holds a notification. */
export function pageOf(seq: number): number {
  return Math.floor((seq - 1) / PAGE);
}

/**
 * The numbered log of a session, read in pages when it is needed. Some pages are kept, those used last; what comes live
 * is put behind the newest, so that following the log asks for nothing.
 */
export class LogPages {
  readonly #ask: Ask;
  readonly #most: Required<Bounds>;
  /** In the order in which they were used. */
  readonly #pages = new Map<number, Page>();
  readonly #asked = new Map<number, Promise<readonly Notification[]>>();
  readonly #firstTimes = new Map<number, number>();
  readonly #watchers = new Set<() => void>();
  #weight = 0;
  #version = 0;
  #lastSeq = 0;

  constructor(ask: Ask, { pages = MOST_PAGES, weight = MOST_WEIGHT, firstSeq = 1 }: Bounds = {}) {
    this.#ask = ask;
    this.#most = { pages, weight, firstSeq };
  }

  /** The number of the first notification that there is. */
  get firstSeq(): number {
    return this.#most.firstSeq;
  }

  /** The number of the newest notification that is known of. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Rises whenever something was read. */
  get version(): number {
    return this.#version;
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  /** That there is a log up to here. */
  reaches(seq: number): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq);
  }

  /** A notification, if its page is here. */
  note(seq: number): Notification | undefined {
    const notes = this.#pages.get(pageOf(seq))?.notes;
    return notes?.[seq - (notes[0]?.seq ?? 0)];
  }

  /** What is here of a page. */
  peek(number: number): readonly Notification[] | undefined {
    return this.#pages.get(number)?.notes;
  }

  /** All that the log has of a page so far. Whoever asks for the same page meanwhile shares the request. */
  page(number: number): Promise<readonly Notification[]> {
    if (number < pageOf(this.firstSeq)) return Promise.resolve([]);
    const known = this.#pages.get(number);
    if (known && this.#isWhole(number, known)) {
      this.#use(number, known);
      return Promise.resolve(known.notes);
    }
    let asked = this.#asked.get(number);
    if (asked === undefined) {
      asked = this.#load(number).finally(() => this.#asked.delete(number));
      this.#asked.set(number, asked);
    }
    return asked;
  }

  /** Take in what came live. What does not join on to a page that is here is read when it is asked for. */
  add(notes: readonly Notification[]): void {
    const joining = new Map<number, Notification[]>();
    for (const note of notes) {
      if (note.seq <= 0) continue;
      this.reaches(note.seq);
      const number = pageOf(note.seq);
      const found = joining.get(number);
      if (found) found.push(note);
      else joining.set(number, [note]);
    }
    for (const [number, found] of joining) this.#join(number, found);
    if (joining.size > 0) this.#changed();
  }

  /** The number of the last notification that is not later than `time`; 0 if all are. */
  async seqAt(time: number): Promise<number> {
    let [low, high] = [pageOf(this.firstSeq), pageOf(Math.max(this.#lastSeq, 1))];
    if (this.#lastSeq < this.firstSeq || (await this.#firstTime(low)) > time) return 0;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((await this.#firstTime(middle)) <= time) low = middle;
      else high = middle - 1;
    }
    const notes = await this.page(low);
    let [first, last] = [0, notes.length - 1];
    while (first < last) {
      const middle = Math.ceil((first + last) / 2);
      if ((notes[middle]?.at ?? 0) <= time) first = middle;
      else last = middle - 1;
    }
    return notes[first]?.seq ?? 0;
  }

  async #firstTime(number: number): Promise<number> {
    const known = this.#firstTimes.get(number);
    if (known !== undefined) return known;
    const { notifications } = await this.#ask(this.#before(number), 1);
    const at = notifications[0]?.at ?? Number.POSITIVE_INFINITY;
    if (notifications[0] !== undefined) this.#firstTimes.set(number, at);
    return at;
  }

  async #load(number: number): Promise<readonly Notification[]> {
    const end = (number + 1) * PAGE;
    for (;;) {
      const after = this.#pages.get(number)?.notes.at(-1)?.seq ?? this.#before(number);
      const { notifications, lastSeq } = await this.#ask(after, end - after);
      this.reaches(lastSeq);
      this.#join(number, notifications);
      this.#changed();
      const notes = this.#pages.get(number)?.notes ?? [];
      if (notifications.length === 0 || (notes.at(-1)?.seq ?? 0) >= Math.min(end, lastSeq)) return notes;
    }
  }

  /** The number before the first notification of a page. */
  #before(number: number): number {
    return Math.max(number * PAGE, this.firstSeq - 1);
  }

  #isWhole(number: number, { notes }: Page): boolean {
    return (notes.at(-1)?.seq ?? 0) >= Math.min((number + 1) * PAGE, this.#lastSeq);
  }

  #join(number: number, more: readonly Notification[]): void {
    const known = this.#pages.get(number);
    const next = (known?.notes.at(-1)?.seq ?? this.#before(number)) + 1;
    const from = more.findIndex((note) => note.seq === next);
    if (from < 0) return;
    const fresh = more.slice(from);
    const added = fresh.reduce((sum, note) => sum + weightOf(note.params), BASE_WEIGHT * fresh.length);
    const page = { notes: known ? [...known.notes, ...fresh] : fresh, weight: (known?.weight ?? 0) + added };
    const [first] = page.notes;
    if (first !== undefined) this.#firstTimes.set(number, first.at);
    this.#weight += added;
    this.#use(number, page);
    this.#letGo(number);
  }

  #use(number: number, page: Page): void {
    this.#pages.delete(number);
    this.#pages.set(number, page);
  }

  /** Keep within the bounds; the page that was just read stays, however large it is. */
  #letGo(kept: number): void {
    for (const [number, { weight }] of this.#pages) {
      if (this.#pages.size <= this.#most.pages && this.#weight <= this.#most.weight) return;
      if (number === kept) continue;
      this.#pages.delete(number);
      this.#weight -= weight;
    }
  }

  #changed(): void {
    this.#version += 1;
    for (const watcher of this.#watchers) watcher();
  }
}

/** About how many characters a value holds. */
function weightOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  let sum = 0;
  for (const part of Object.values(value)) sum += 16 + weightOf(part);
  return sum;
}
