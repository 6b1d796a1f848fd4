import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import type { Notification } from "../../client/client";
import { currentHistory } from "../../history/history";
import { type Matches, searchBack } from "../../history/search";
import { listen, usePage } from "../../state/page";

/** A search rests when it has found so many: nobody reads more before asking for more. */
const ENOUGH = 500;
/** More than this many are not kept; the oldest are let go. */
const MOST_FOUND = 20_000;

export interface Search {
  /** What was found, in order. */
  readonly notes: readonly Notification[];
  /** The log was searched from its end down to here. */
  readonly searchedTo: number;
  readonly isBusy: boolean;
  readonly problem: Error | null;
  readonly stop: () => void;
  /** Search further back. */
  readonly goOn: () => void;
}

interface Found {
  readonly notes: readonly Notification[];
  readonly searchedTo: number;
}

type Change = { kind: "begin"; from: number } | ({ kind: "older" } & Found) | { kind: "newer"; notes: Notification[] };

function changed(found: Found, change: Change): Found {
  if (change.kind === "begin") return { notes: [], searchedTo: change.from };
  if (change.kind === "newer") return { ...found, notes: [...found.notes, ...change.notes].slice(-MOST_FOUND) };
  return { notes: [...change.notes, ...found.notes], searchedTo: change.searchedTo };
}

/** What passes a filter: searched backwards through the log, and added to as more happens. */
export function useSearch(matches: Matches | null): Search {
  const [found, change] = useReducer(changed, { notes: [], searchedTo: 0 });
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const running = useRef<AbortController | null>(null);
  const sessionId = usePage((page) => page.sessionId);

  const stop = useCallback(() => {
    running.current?.abort();
    running.current = null;
    setIsBusy(false);
  }, []);

  const run = useCallback(
    async (wanted: Matches, from: number) => {
      running.current?.abort();
      const own = new AbortController();
      running.current = own;
      setIsBusy(true);
      setProblem(null);
      let sum = 0;
      try {
        for await (const older of searchBack(currentHistory().pages, wanted, { from, signal: own.signal })) {
          if (own.signal.aborted) return;
          change({ kind: "older", ...older });
          sum += older.notes.length;
          if (sum >= ENOUGH) break;
        }
      } catch (error) {
        if (!own.signal.aborted) setProblem(error as Error);
      }
      if (running.current === own) stop();
    },
    [stop],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: another session has another log
  useEffect(() => {
    if (matches === null) return;
    const from = usePage.getState().live.seq;
    change({ kind: "begin", from });
    if (from > 0) void run(matches, from);
    let last = from;
    const leave = listen((notes) => {
      const fresh = notes.filter((note) => note.seq > last && matches(note));
      last = Math.max(last, notes.at(-1)?.seq ?? 0);
      if (fresh.length > 0) change({ kind: "newer", notes: fresh });
    });
    return () => {
      leave();
      stop();
    };
  }, [matches, run, stop, sessionId]);

  const goOn = useCallback(() => {
    if (matches !== null && found.searchedTo > 0) void run(matches, found.searchedTo);
  }, [matches, run, found.searchedTo]);
  return { ...found, isBusy, problem, stop, goOn };
}
