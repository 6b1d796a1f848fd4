import { useCallback, useEffect, useRef, useState } from "react";
import type { LogEntries } from "../../client/client";
import { listen, usePage } from "../../state/page";
import { server } from "../../state/server";

export type LogEntry = LogEntries["entries"][number];

const KEPT = 5_000;
const AGAIN_MS = 400;

/** The entries with those that follow; the oldest are let go of when there are too many. */
export function longer(before: readonly LogEntry[], more: readonly LogEntry[], kept = KEPT): readonly LogEntry[] {
  return more.length === 0 ? before : [...before, ...more].slice(-kept);
}

/** What identifies an entry in the address: its number or, for one without, its time. */
export function entryKey(entry: LogEntry): string {
  return String(entry.seq ?? entry.time ?? "");
}

/** Whether it is to be shown: at its time, at this level or a worse one, with this text somewhere in it. */
export function isShown(entry: LogEntry, { at, level, text }: { at: number; level: string; text: string }): boolean {
  const { time } = entry;
  if (typeof time === "string" && Date.parse(time) / 1000 > at) return false;
  if (LEVELS.indexOf(String(entry.level)) < LEVELS.indexOf(level)) return false;
  return text === "" || JSON.stringify(entry).toLowerCase().includes(text.toLowerCase());
}

export const LEVELS = ["debug", "info", "warning", "error"];

export interface LogTail {
  readonly entries: readonly LogEntry[] | null;
  readonly error: Error | null;
  readonly again: () => void;
}

/** The end of an agent's log, read on whenever something was told of the agent. */
export function useLogTail(agentId: string, limit: number): LogTail {
  const [entries, setEntries] = useState<readonly LogEntry[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [turn, setTurn] = useState(0);
  const isOpen = usePage((page) => page.connection === "open");
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const next = useRef<number | null>(null);
  const again = useCallback(() => setTurn((count) => count + 1), []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn reads the log anew
  useEffect(() => {
    if (!isOpen) return;
    let isWanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    next.current = null;
    async function read(): Promise<void> {
      try {
        const after = next.current;
        const page = await server().call("log.read", {
          sessionId,
          agentId,
          limit,
          ...(after === null ? {} : { after }),
        });
        if (!isWanted) return;
        next.current = page.next;
        setError(null);
        setEntries((before) => (after === null ? page.entries : longer(before ?? [], page.entries)));
        if (after !== null && page.entries.length >= limit) await read();
      } catch (failure) {
        if (isWanted) setError(failure as Error);
      }
    }
    const first = read();
    let isBehind = false;
    function readSoon(): void {
      timer = setTimeout(() => {
        isBehind = false;
        void first.then(read).then(() => {
          timer = undefined;
          if (isBehind && isWanted) readSoon(); // what was told meanwhile may have come too late for it
        });
      }, AGAIN_MS);
    }
    const leave = listen((notes) => {
      if (!notes.some((note) => isOf(note.params, agentId) && note.seq > 0)) return;
      isBehind = true;
      if (timer === undefined) readSoon();
    });
    return () => {
      isWanted = false;
      leave();
      clearTimeout(timer);
    };
  }, [sessionId, agentId, limit, isOpen, turn]);
  return { entries, error, again };
}

function isOf(params: object, agentId: string): boolean {
  const { agentId: about, sender, recipient } = params as Record<string, unknown>;
  return about === agentId || sender === agentId || recipient === agentId;
}
