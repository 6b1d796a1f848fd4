import { create } from "zustand";
import type { ConnectionState, Notification, ServerInfo, SessionSummary } from "../client/client";
import type { Part } from "../parts/continuations";
import { EMPTY, type World } from "../projection/world";

/** The pieces of an answer that is being written, by channel. They are gone when its step has ended. */
export interface Stream {
  readonly agentId: string;
  readonly taskId: string;
  readonly stepId: string;
  readonly attempt: number;
  readonly analysis: string;
  readonly commentary: string;
  readonly final: string;
  /** What a tool writes while it runs. */
  readonly output: string;
  /** The parts of the answer that this one continues, as far as the page has seen them end. */
  readonly earlier: readonly Part[];
  /** Whether it goes on where the last of these was cut. */
  readonly continuesCut: boolean;
  /** Whether what the attempt had written turned out to be reasoning. */
  readonly isReclassified: boolean;
}

/** Where the page stands in the past. */
export interface Playhead {
  readonly world: World;
  /** How many times faster than it happened it is played; 0 while it stands still. */
  readonly speed: number;
}

export interface Page {
  readonly connection: ConnectionState;
  /** Why there is no connection. */
  readonly problem: Error | null;
  readonly server: ServerInfo | null;
  readonly sessions: readonly SessionSummary[] | null;
  readonly sessionId: string | null;
  /** Whether the session's world has been loaded. */
  readonly isLoaded: boolean;
  /** Why the session cannot be followed, or not any more: it is none, or was deleted. */
  readonly ended: Error | null;
  /** The session as it is now, and since when its log is kept. */
  readonly live: World;
  readonly createdAt: number;
  /** The first notification that the log has: what came before was pruned. */
  readonly firstSeq: number;
  /** The session when the page began to follow it: no earlier one can be shown if the log was pruned. */
  readonly base: World;
  /** By task. */
  readonly streams: ReadonlyMap<string, Stream>;
  /** Null while the page shows what is live. */
  readonly playhead: Playhead | null;
}

export const NOTHING: Page = {
  connection: "connecting",
  problem: null,
  server: null,
  sessions: null,
  sessionId: null,
  isLoaded: false,
  ended: null,
  live: EMPTY,
  createdAt: 0,
  firstSeq: 1,
  base: EMPTY,
  streams: new Map(),
  playhead: null,
};

/** All that the page knows. Only the modules of `state/` write to it. */
export const usePage = create<Page>()(() => NOTHING);

/** The world that is shown: the present one or, with a playhead, an earlier one. */
export function shownWorld(page: Page = usePage.getState()): World {
  return page.playhead?.world ?? page.live;
}

/** A part of the world that is shown: of the present one or, with a playhead, of an earlier one. */
export function useWorld<Part>(part: (world: World) => Part): Part {
  return usePage((page) => part(shownWorld(page)));
}

/** Whether the server can be asked about the session. */
export function isReachable({ connection, ended }: Page): boolean {
  return connection === "open" && ended === null;
}

/** Whether what is shown is the present, and can be acted on. */
export function isLive(page: Page): boolean {
  return page.playhead === null && isReachable(page);
}

export function useIsLive(): boolean {
  return usePage(isLive);
}

/** Whether an earlier time is shown. */
export function useIsPast(): boolean {
  return usePage((page) => page.playhead !== null);
}

/** Why the server cannot be asked about the session. */
export function whyNotReachable(): string {
  return usePage.getState().ended !== null ? "This session has ended." : "There is no connection to the server.";
}

/** Why what is shown cannot be acted on. */
export function whyNotLive(): string {
  const { playhead, ended } = usePage.getState();
  if (ended !== null || playhead === null) return whyNotReachable();
  return "This is the past: it cannot be changed. Go back to live first.";
}

/** Have something done when another session is shown, also one that has taken the id of the one before. */
export function onAnotherSession(changed: () => void): void {
  usePage.subscribe((page, before) => {
    const isReplaced = before.createdAt !== 0 && page.createdAt !== before.createdAt;
    if (page.sessionId !== before.sessionId || isReplaced) changed();
  });
}

type Listener = (notes: readonly Notification[]) => void;
const listeners = new Set<Listener>();

/** Have each batch of live notifications handed over, deltas included, after the world has taken them in. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function tell(notes: readonly Notification[]): void {
  for (const listener of listeners) listener(notes);
}
