import type { NotificationOf } from "../../client/client";
import { usePage } from "../../state/page";
import { server } from "../../state/server";

export type LimitReached = NotificationOf<"limit.reached">;

/** What was found, and from which number of the log on it was looked for. */
export interface Found {
  readonly notes: readonly LimitReached[];
  readonly from: number;
}

const PAGE = 2000;
/** How many entries are looked through at once, and how many finds are enough. */
const MOST_LOOKED = 10_000;
const ENOUGH = 30;

/** Look back in the log from an entry on, until enough was found or enough was looked through. */
export async function lookBack(sessionId: string, before: number): Promise<Found> {
  const notes: LimitReached[] = [];
  let from = before;
  while (from > 0 && notes.length < ENOUGH && before - from < MOST_LOOKED) {
    const after = Math.max(0, from - PAGE);
    const { notifications } = await server().call("events.list", { sessionId, after, limit: from - after });
    notes.unshift(...notifications.filter((note): note is LimitReached => note.name === "limit.reached"));
    from = after;
  }
  return { notes, from };
}

/** Those of a batch that tell of a limit. */
export function reachedIn(notes: readonly { name: string }[]): LimitReached[] {
  return notes.filter((note): note is LimitReached => note.name === "limit.reached");
}

/** Both together: each entry once, in order. */
export function merged(known: readonly LimitReached[], more: readonly LimitReached[]): LimitReached[] {
  const bySeq = new Map([...known, ...more].map((note) => [note.seq, note]));
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

/** Those up to an entry, of an agent if one is given, the newest first. */
export function shownOf(notes: readonly LimitReached[], upTo: number, agentId: string): LimitReached[] {
  return notes.filter(({ seq, params }) => seq <= upTo && (agentId === "" || params.agentId === agentId)).reverse();
}

export function lastSeq(): number {
  return usePage.getState().live.seq;
}
