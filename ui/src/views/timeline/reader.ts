import { breather } from "../../history/breath";
import type { History } from "../../history/history";
import { PAGE, pageOf } from "../../history/pages";
import { EMPTY } from "../../projection/world";
import { chartFrom, extended } from "./bars";
import { type Chart, NO_CHART } from "./chart";
import type { Range } from "./range";

/** How many pages of the log are drawn at most. */
const MOST_PAGES = 30;

export interface Read {
  readonly chart: Chart;
  /** The range that all was read of last. */
  readonly covered: Range | null;
  /** Whether a part of what was wanted was left out, as it is too much. */
  readonly isShort: boolean;
  /** Whether it is not known what went on when the chart begins, as that is too far from what is known. */
  readonly isCut: boolean;
  /** How much of what is needed first was read, from 0 to 1; null when all is there. */
  readonly progress: number | null;
  readonly problem: Error | null;
}

export const NOTHING_READ: Read = {
  chart: NO_CHART,
  covered: null,
  isShort: false,
  isCut: false,
  progress: 0,
  problem: null,
};

/** Reads the part of the log that a range of time needs, and goes on from what it has where it can. */
export class ChartReader {
  readonly #history: History;
  readonly #tell: (read: Read) => void;
  readonly #furthest: number;
  #read = NOTHING_READ;
  /** The page that the chart begins with; null before there is one. */
  #first: number | null = null;
  #wanted: Range | null = null;
  #isRunning = false;
  #stop = new AbortController();

  /** To know what went on when a chart begins, no more than `furthest` entries before it are read. */
  constructor(history: History, tell: (read: Read) => void, furthest = Number.POSITIVE_INFINITY) {
    this.#history = history;
    this.#tell = tell;
    this.#furthest = furthest;
  }

  /** Have what happened in this range read. What is on its way for another range is given up. */
  want(range: Range): void {
    this.#wanted = range;
    if (!this.#isRunning) void this.#run();
  }

  close(): void {
    this.#wanted = null;
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    this.#stop = new AbortController();
    try {
      while (this.#wanted !== null) {
        const range = this.#wanted;
        await this.#cover(range);
        if (this.#wanted === range) this.#wanted = null;
      }
    } catch (problem) {
      this.#wanted = null;
      if (!this.#stop.signal.aborted) this.#show({ problem: problem as Error, progress: null });
    } finally {
      this.#isRunning = false;
    }
  }

  async #cover(range: Range): Promise<void> {
    const { pages } = this.#history;
    const last = Math.max(await pages.seqAt(range.to), 1);
    const wanted = pageOf(Math.max(await pages.seqAt(range.from), 1));
    const first = Math.max(wanted, pageOf(last) - MOST_PAGES + 1);
    if (!this.#reaches(first, pageOf(last))) await this.#begin(first);
    const isShort = first > wanted;
    const breathe = breather();
    const end = Math.min((pageOf(last) + 1) * PAGE, pages.lastSeq);
    while (this.#read.chart.seq < end && this.#wanted === range) {
      const { chart } = this.#read;
      const notes = await pages.page(pageOf(chart.seq + 1));
      if (this.#stop.signal.aborted) return;
      const more = extended(chart, notes);
      if (more.seq === chart.seq) break;
      this.#show({ chart: more, isShort, progress: null, problem: null });
      await breathe();
    }
    if (this.#wanted === range) this.#show({ covered: range, isShort, progress: null, problem: null });
  }

  /** Whether the chart has this page, or goes up to it, and does not become too long. */
  #reaches(first: number, last: number): boolean {
    if (this.#first === null || first < this.#first || last - this.#first >= MOST_PAGES * 2) return false;
    return first * PAGE <= this.#read.chart.seq;
  }

  async #begin(first: number): Promise<void> {
    const onProgress = (progress: number) => this.#show({ progress });
    const { keyframes } = this.#history;
    const start = Math.max(first * PAGE, keyframes.first);
    const isCut = start - keyframes.nearest(start).seq > this.#furthest;
    const world = isCut
      ? { ...EMPTY, seq: start }
      : await keyframes.worldAt(start, { signal: this.#stop.signal, onProgress });
    this.#first = first;
    this.#read = { ...this.#read, chart: chartFrom(world), isCut };
  }

  #show(change: Partial<Read>): void {
    const before = this.#read;
    this.#read = { ...before, ...change };
    const isSame = (Object.keys(change) as (keyof Read)[]).every((name) => before[name] === this.#read[name]);
    if (!isSame && !this.#stop.signal.aborted) this.#tell(this.#read);
  }
}
