import { fitting, moved, type Range, spanOf } from "../timeline/range";
import type { Both, SessionLog } from "./logs";

/** A range in seconds since the origins of two sessions, which is shown of both. */
export type Shared = Range;

/** From where the time of each session is counted: its beginning, or its first difference. */
export type Origins = Both<number>;

/** All that happened in either session. */
export function wholeOf(logs: Both<SessionLog>, origins: Origins): Shared {
  const from = Math.min(...logs.map(({ firstAt }, side) => firstAt - (origins[side] as number)));
  const to = Math.max(...logs.map(({ lastAt }, side) => lastAt - (origins[side] as number)));
  return fitting(from, to);
}

export function absolute({ from, to }: Shared, origin: number): Range {
  return { from: from + origin, to: to + origin };
}

export function relative({ from, to }: Range, origin: number): Shared {
  return { from: from - origin, to: to - origin };
}

/** The range that holds both. */
export function joined(one: Shared | null, other: Shared | null): Shared | null {
  if (one === null || other === null) return one ?? other;
  return { from: Math.min(one.from, other.from), to: Math.max(one.to, other.to) };
}

/** The last second of it. */
export function lastOf({ to }: Shared): Shared {
  return { from: to - 1, to };
}

/** The range moved so that it ends where the whole does. */
export function atEnd(range: Shared, whole: Shared): Shared {
  return moved(range, (whole.to - range.to) / spanOf(range));
}

/** How it is written in an address. */
export function written({ from, to }: Shared): string {
  return `${from.toFixed(3)}~${to.toFixed(3)}`;
}

export function read(text: string): Shared | null {
  const [from, to] = text.split("~").map(Number);
  if (from === undefined || to === undefined || !Number.isFinite(from) || !Number.isFinite(to)) return null;
  return to - from >= 0.005 && to - from < 4e7 ? { from, to } : null;
}
