import type { LimitState } from "../../client/client";
import { bytes, count, duration, money } from "../../parts/format";

/** A quantity of a limit in the unit that its name tells. */
function limitAmount(name: string, value: number): string {
  if (name.endsWith("_bytes")) return bytes(value);
  if (name.endsWith("_seconds")) return duration(value);
  return name.includes("_usd") ? money(value) : count(value);
}

export interface LimitBar {
  readonly name: string;
  /** Null where what is used of it cannot be told. */
  readonly used: string | null;
  /** Null where there is no limit. */
  readonly most: string | null;
  /** How much of it is used, from 0 to 100; null where that cannot be told. */
  readonly percent: number | null;
  readonly source: LimitState["source"];
  readonly reached: number;
}

/** Those that are used up most first, then those of which a use can be told, then the others. */
export function limitBars(limits: readonly LimitState[]): LimitBar[] {
  return limits.map(limitBar).sort((one, other) => weight(other) - weight(one));
}

function limitBar({ name, value, used, source, reached }: LimitState): LimitBar {
  const isBounded = value > 0;
  return {
    name,
    used: used === null ? null : limitAmount(name, used),
    most: isBounded ? limitAmount(name, value) : null,
    percent: isBounded && used !== null ? Math.min(100, (used / value) * 100) : null,
    source,
    reached,
  };
}

function weight({ percent, used }: LimitBar): number {
  if (percent !== null) return 1 + percent;
  return used === null ? 0 : 1;
}
