import { useEffect, useState } from "react";
import { historyOf } from "../../history/history";
import { worldOf } from "../../projection/snapshot";
import type { World } from "../../projection/world";
import { usePage } from "../../state/page";
import { server } from "../../state/server";
import type { Drawable } from "../timeline/useChart";

/** To know what went on when a drawing begins, no more than so many entries before it are read. */
const FURTHEST = 10_000;

/** The log of a session as far as it went when this was asked for. */
export interface SessionLog extends Drawable {
  readonly sessionId: string;
  readonly agents: World["agents"];
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** When its first and its last entry were. */
  readonly firstAt: number;
  readonly lastAt: number;
}

export type Both<Value> = readonly [a: Value, b: Value];

const NEVER = () => () => {};

async function logOf(sessionId: string): Promise<SessionLog> {
  const snapshot = await server().call("session.snapshot", { sessionId });
  const { firstSeq, lastSeq, at } = snapshot;
  const base = worldOf(snapshot);
  const [firstAt = at] = (await timesOf(sessionId, [firstSeq])).values();
  const history = historyOf(sessionId, { firstSeq, base });
  history.pages.reaches(lastSeq);
  const log = { history, onGrown: NEVER, furthest: FURTHEST };
  return { ...log, sessionId, agents: base.agents, firstSeq, lastSeq, firstAt, lastAt: Math.max(at, firstAt) };
}

/** When these entries of a log were; those that it does not have are left out. */
export async function timesOf(sessionId: string, seqs: readonly number[]): Promise<ReadonlyMap<number, number>> {
  const times = new Map<number, number>();
  for (const seq of seqs) {
    const { notifications } = await server().call("events.list", { sessionId, after: seq - 1, limit: 1 });
    const [note] = notifications;
    if (note?.seq === seq) times.set(seq, note.at);
  }
  return times;
}

export interface Logs {
  readonly logs: Both<SessionLog> | null;
  /** When they were asked for. */
  readonly readAt: number;
  readonly problem: Error | null;
}

const NO_LOGS: Logs = { logs: null, readAt: 0, problem: null };

/** The logs of two sessions, read again with each turn; meanwhile those of the turn before stay. */
export function useLogs(a: string, b: string, turn: number): Logs {
  const [read, setRead] = useState(NO_LOGS);
  const isOpen = usePage((page) => page.connection === "open");
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn reads again
  useEffect(() => {
    if (!isOpen) return;
    let isLeft = false;
    const readAt = Date.now() / 1000;
    const show = (next: (before: Logs) => Logs) => isLeft || setRead(next);
    show((before) => (before.logs?.[0].sessionId === a && before.logs[1].sessionId === b ? before : NO_LOGS));
    Promise.all([logOf(a), logOf(b)]).then(
      (logs) => show(() => ({ logs, readAt, problem: null })),
      (problem) => show((before) => ({ ...before, problem })),
    );
    return () => {
      isLeft = true;
    };
  }, [a, b, turn, isOpen]);
  return read;
}
