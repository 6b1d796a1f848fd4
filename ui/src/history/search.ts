import type { Notification } from "../client/client";
import { breather } from "./breath";
import { type LogPages, pageOf } from "./pages";
import { agentOf, telling } from "./telling";

export type Matches = (note: Notification) => boolean;

export interface Filter {
  readonly agent: string;
  /** A name or its beginning: `mail` stands for all about mail. */
  readonly name: string;
  readonly text: string;
}

/** Whether a notification passes a filter; null for a filter that lets all pass. */
export function matcher({ agent, name, text }: Filter): Matches | null {
  const wanted = text.trim().toLowerCase();
  if (agent === "" && name === "" && wanted === "") return null;
  return (note) => {
    if (name !== "" && !note.name.startsWith(name)) return false;
    if (agent !== "" && !concerns(note, agent)) return false;
    return wanted === "" || says(note, wanted);
  };
}

function concerns(note: Notification, agent: string): boolean {
  const { recipient, toAgent, sender } = note.params as Partial<Record<string, string>>;
  return agentOf(note) === agent || recipient === agent || toAgent === agent || sender === agent;
}

function says(note: Notification, wanted: string): boolean {
  if (note.cause.toLowerCase().includes(wanted) || note.name.includes(wanted)) return true;
  return telling(note).toLowerCase().includes(wanted) || JSON.stringify(note.params).toLowerCase().includes(wanted);
}

export interface Found {
  /** In order. */
  readonly notes: readonly Notification[];
  /** The log has been searched down to the notification after this one. */
  readonly searchedTo: number;
}

/** Search the log backwards from a notification, page by page. */
export async function* searchBack(
  pages: LogPages,
  matches: Matches,
  { from, signal }: { from: number; signal: AbortSignal },
): AsyncGenerator<Found> {
  const breathe = breather();
  for (let number = pageOf(from); number >= pageOf(pages.firstSeq); number -= 1) {
    const notes = await pages.page(number);
    if (number > 0) void pages.page(number - 1).catch(() => {}); // the search is told when it gets there
    const found: Notification[] = [];
    for (const [index, note] of notes.entries()) {
      if (note.seq <= from && matches(note)) found.push(note);
      if (index % 100 === 0) await breathe();
    }
    if (signal.aborted) return;
    yield { notes: found, searchedTo: (notes[0]?.seq ?? 1) - 1 };
  }
}

const MOST_PAGES = 50;

/** The number of the next notification of this kind, or of the one before; null if there is none in some ten thousands. */
export async function findNear(
  pages: LogPages,
  matches: Matches,
  { from, direction }: { from: number; direction: 1 | -1 },
): Promise<number | null> {
  const last = pageOf(pages.lastSeq);
  let number = pageOf(Math.max(from, 1));
  for (let read = 0; read < MOST_PAGES && number >= 0 && number <= last; read += 1, number += direction) {
    const notes = await pages.page(number);
    const isThere = (note: Notification) => (note.seq - from) * direction > 0 && matches(note);
    const found = direction > 0 ? notes.find(isThere) : notes.findLast(isThere);
    if (found !== undefined) return found.seq;
  }
  return null;
}
