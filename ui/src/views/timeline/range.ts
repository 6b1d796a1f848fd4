import { duration } from "../../parts/format";

/** A stretch of time that is shown, in seconds since the epoch. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

const SHORTEST = 0.005;
const LONGEST = 400 * 86_400;

export function spanOf({ from, to }: Range): number {
  return to - from;
}

/** The range so many times as long, around a place in it: 0 is its beginning, 1 its end. */
export function zoomed(range: Range, factor: number, place = 0.5): Range {
  const span = Math.max(SHORTEST, Math.min(LONGEST, spanOf(range) * factor));
  const from = range.from + place * (spanOf(range) - span);
  return { from, to: from + span };
}

/** The range moved by a part of its length. */
export function moved({ from, to }: Range, part: number): Range {
  const by = part * (to - from);
  return { from: from + by, to: to + by };
}

/** A range that holds this one, with some room at its edges. */
export function fitting(first: number, last: number): Range {
  const room = Math.max((last - first) * 0.03, 0.5);
  return { from: first - room, to: Math.max(last, first) + room };
}

/** How a range is written in an address: to the millisecond. */
export function written(range: Range): string {
  return `${range.from.toFixed(3)}-${range.to.toFixed(3)}`;
}

export function read(text: string): Range | null {
  const [from, to] = text.split("-").map(Number);
  if (from === undefined || to === undefined || !Number.isFinite(from) || !Number.isFinite(to)) return null;
  return to - from >= SHORTEST && to - from <= LONGEST ? { from, to } : null;
}

const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600,
  7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
];

export interface Tick {
  readonly at: number;
  readonly label: string;
}

/** Round times in a range, at most so many: of the day or, if there is an `origin`, since that. */
export function ticks(range: Range, most: number, origin: number | null = null): Tick[] {
  const step = STEPS.find((each) => spanOf(range) / each <= Math.max(most, 1)) ?? spanOf(range);
  const offset = origin ?? new Date(range.from * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((range.from - offset) / step);
  const found: Tick[] = [];
  for (let index = first; index * step + offset <= range.to && index - first < 200; index += 1) {
    const at = index * step + offset;
    found.push({ at, label: origin === null ? labelOf(at, step) : sinceOf(index * step, step) });
  }
  return found;
}

function sinceOf(seconds: number, step: number): string {
  if (Math.abs(seconds) < step / 2) return "0 s";
  const sign = seconds < 0 ? "−" : "";
  if (step < 1) return `${sign}${Math.abs(seconds).toFixed(step < 0.1 ? 3 : 1)} s`;
  return `${sign}${duration(Math.abs(Math.round(seconds)))}`;
}

function labelOf(at: number, step: number): string {
  const date = new Date(Math.round(at * 1000));
  const time = date.toLocaleTimeString("en-GB");
  if (step >= 86_400) return date.toLocaleDateString("en-CA");
  if (step >= 60) return time.slice(0, 5);
  if (step >= 1) return time;
  return `${time.slice(3)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
