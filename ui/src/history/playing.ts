import type { Notification } from "../client/client";

export const SPEEDS = [1, 5, 20, 100] as const;

/** Where playing has come: the time on its clock, and how many notifications it passed on the way. */
export interface Advance {
  readonly clock: number;
  readonly passed: number;
}

/**
 * Let the clock go on by so many seconds, over the notifications ahead. Nobody wants to watch nothing happen: where
 * the next one is further away than `longestGap` the clock jumps ahead.
 */
export function advance(
  ahead: readonly Notification[],
  clock: number,
  { seconds, longestGap }: { seconds: number; longestGap: number },
): Advance {
  let time = Math.max(clock, (ahead[0]?.at ?? clock) - longestGap) + seconds;
  let passed = 0;
  for (const note of ahead) {
    if (note.at > time) break;
    passed += 1;
    const next = ahead[passed];
    if (next !== undefined && next.at - note.at > longestGap) time = Math.min(time, note.at);
  }
  return { clock: time, passed };
}
