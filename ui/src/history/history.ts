import { useSyncExternalStore } from "react";
import { EMPTY, type World } from "../projection/world";
import { listen, usePage } from "../state/page";
import { type Server, server } from "../state/server";
import { Keyframes } from "./keyframes";
import { type Ask, LogPages } from "./pages";

/** What is known of a session's past. */
export interface History {
  readonly pages: LogPages;
  readonly keyframes: Keyframes;
}

interface Kept extends History {
  readonly firstSeq: number;
  readonly talking: Server;
  readonly sessionId: string;
  readonly createdAt: number;
}

let kept: Kept | null = null;

/** The past of the session that is shown. Another session, or one of the same id on another server, has another. */
export function currentHistory(): History {
  const { sessionId, createdAt, firstSeq, base, live } = usePage.getState();
  const talking = server();
  const isSame = kept?.sessionId === sessionId && kept.createdAt === createdAt && kept.firstSeq === firstSeq;
  if (kept === null || !isSame || kept.talking !== talking) {
    const made = historyOf(sessionId ?? "", { firstSeq, base });
    kept = { talking, sessionId: sessionId ?? "", createdAt, firstSeq, ...made };
  }
  kept.pages.reaches(live.seq);
  if (live.seq > 0) kept.keyframes.keep(live);
  return kept;
}

interface Beginning {
  /** The first notification that the log has, and a world to begin with if others came before it. */
  readonly firstSeq: number;
  readonly base: World;
}

/** The past of any session. */
export function historyOf(sessionId: string, { firstSeq, base }: Beginning): History {
  const talking = server();
  const ask: Ask = (after, limit) => talking.call("events.list", { sessionId, after, limit });
  const pages = new LogPages(ask, { firstSeq });
  return { pages, keyframes: new Keyframes(pages, { base: firstSeq > 1 ? base : EMPTY }) };
}

/** The pages of the log; whoever uses this is drawn again when more of them were read. */
export function usePages(): LogPages {
  usePage((page) => page.createdAt);
  usePage((page) => page.sessionId);
  const { pages } = currentHistory();
  useSyncExternalStore(pages.watch, () => pages.version);
  return pages;
}

listen((notes) => currentHistory().pages.add(notes));
