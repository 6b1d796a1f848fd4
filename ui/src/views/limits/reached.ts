import type { Notification, NotificationOf } from "../../client/client";

export type LimitReached = NotificationOf<"limit.reached">;

export function isReached(note: Notification): note is LimitReached {
  return note.name === "limit.reached";
}

/** Those up to an entry, of an agent if one is given, the newest first. */
export function shownOf(notes: readonly Notification[], upTo: number, agentId: string): LimitReached[] {
  return notes
    .filter(isReached)
    .filter(({ seq, params }) => seq <= upTo && (agentId === "" || params.agentId === agentId))
    .reverse();
}
