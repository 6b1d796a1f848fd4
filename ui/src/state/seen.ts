import { create } from "zustand";
import { USER } from "../projection/coordination";
import type { Room } from "../projection/world";
import { listen, type Page, usePage } from "./page";

/** The number of the last message that was seen in this browser, by session (`seenKey`) and room. */
type Seen = Readonly<Record<string, Readonly<Record<string, number>>>>;

const PREFIX = "whisperer.seen.";

/** What a session is known by here: another may get its id when it is deleted, and nothing of that one was seen. */
export function seenKey({ sessionId, createdAt }: Pick<Page, "sessionId" | "createdAt">): string {
  return `${createdAt}.${sessionId}`;
}

export const useSeen = create<{ seen: Seen }>()(() => ({ seen: {} }));

const NOTHING: Readonly<Record<string, number>> = {};

/** What was seen of a session, read from the browser's store when it is first needed. */
export function seenOf(seen: Seen, session: string): Readonly<Record<string, number>> {
  return seen[session] ?? NOTHING;
}

/**
 * Read what was seen of a session. In a browser that has not shown it before, what is there counts as seen: it was
 * answered elsewhere, and only what comes from now on is news.
 */
export function loadSeen(session: string, rooms: Iterable<Pick<Room, "roomId" | "lastNumber">>): void {
  if (read(session) || session in useSeen.getState().seen) return; // the store may be full or shut
  keep(session, Object.fromEntries([...rooms].map(({ roomId, lastNumber }) => [roomId, lastNumber])));
}

/** Take in what the browser's store has; false if it has nothing. */
function read(session: string): boolean {
  return put(session, localStorage.getItem(PREFIX + session));
}

function keep(session: string, numbers: Readonly<Record<string, number>>): void {
  const text = JSON.stringify(numbers);
  put(session, text);
  try {
    localStorage.setItem(PREFIX + session, text);
  } catch {
    // The browser's store is full or shut: what was seen is known until the page is left.
  }
}

/** Everything up to this message was in sight. */
export function markSeen(session: string, roomId: string, number: number): void {
  read(session); // another tab may have seen more of other rooms
  const before = seenOf(useSeen.getState().seen, session);
  if (number > (before[roomId] ?? 0)) keep(session, { ...before, [roomId]: number });
}

export function unreadOf(room: Pick<Room, "roomId" | "lastNumber">, seen: Readonly<Record<string, number>>): number {
  return Math.max(0, room.lastNumber - (seen[room.roomId] ?? 0));
}

export function unreadIn(rooms: ReadonlyMap<string, Room>, seen: Readonly<Record<string, number>>): number {
  let total = 0;
  for (const room of rooms.values()) total += unreadOf(room, seen);
  return total;
}

function put(session: string, text: string | null): boolean {
  const numbers = parsed(text);
  if (numbers === null) return false;
  useSeen.setState(({ seen }) =>
    JSON.stringify(seen[session]) === JSON.stringify(numbers) ? { seen } : { seen: { ...seen, [session]: numbers } },
  );
  return true;
}

function parsed(text: string | null): Record<string, number> | null {
  try {
    const read: unknown = JSON.parse(text ?? "null");
    if (typeof read !== "object" || read === null) return null;
    return Object.fromEntries(Object.entries(read).filter(([, number]) => Number.isSafeInteger(number)));
  } catch {
    return null;
  }
}

/** Who says something, here or in a terminal, has seen what was said before. */
listen((notes) => {
  for (const note of notes) {
    if (note.name !== "room.message" || note.params.sender !== USER) continue;
    markSeen(seenKey(usePage.getState()), note.params.roomId, note.params.number);
  }
});

/** What is seen in another tab is seen in this one. */
addEventListener("storage", ({ key, newValue }) => {
  if (key?.startsWith(PREFIX)) put(key.slice(PREFIX.length), newValue);
});
