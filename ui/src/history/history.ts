import { useSyncExternalStore } from "react";
import { listen, usePage } from "../state/page";
import { type Server, server } from "../state/server";
import { Keyframes } from "./keyframes";
import { LogPages } from "./pages";

/** What is known of a session's past. */
export interface History {
  readonly pages: LogPages;
  readonly keyframes: Keyframes;
}

interface Kept extends History {
  readonly talking: Server;
  readonly sessionId: string;
  readonly createdAt: number;
}

let kept: Kept | null = null;

/** The past of the session that is shown. Another session, or one of the same id on another server, has another. */
export function currentHistory(): History {
  const { sessionId, createdAt, live } = usePage.getState();
  const talking = server();
  if (kept === null || kept.sessionId !== sessionId || kept.createdAt !== createdAt || kept.talking !== talking) {
    kept = { talking, sessionId: sessionId ?? "", createdAt, ...newHistory(talking, sessionId ?? "") };
  }
  kept.pages.reaches(live.seq);
  if (live.seq > 0) kept.keyframes.keep(live);
  return kept;
}

function newHistory(talking: Server, sessionId: string): History {
  const pages = new LogPages((after, limit) => talking.call("events.list", { sessionId, after, limit }));
  return { pages, keyframes: new Keyframes(pages) };
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
