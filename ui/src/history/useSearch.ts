import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import type { Notification } from "../client/client";
import { listen, usePage } from "../state/page";
import { currentHistory } from "./history";
import { PAGE, pageOf } from "./pages";
import { type Matches, searchBack } from "./search";

export interface Rest {
  /** A search rests when it has found so many: nobody reads more before asking for more. */
  readonly found: number;
  /** It rests as well when it has looked through so many. */
  readonly looked: number;
}

const ENOUGH: Rest = { found: 500, looked: Number.POSITIVE_INFINITY };
/** More than this many are not kept; the oldest are let go. */
const MOST_FOUND = 20_000;

export interface Search {
  /** What was found, in order. */
  readonly notes: readonly Notification[];
  /** The log was searched down to here, from its end or from the moment that is shown. */
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

/**
 * What passes a filter: searched backwards through the log from what is shown, and added to as more happens. It may
 * have some that come after a moment of the past that is shown.
 */
export function useSearch(matches: Matches | null, rest: Rest = ENOUGH): Search {
  const [found, change] = useReducer(changed, { notes: [], searchedTo: 0 });
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const running = useRef<AbortController | null>(null);
  const sessionId = usePage((page) => page.sessionId);
  const until = usePage(({ playhead }) => (playhead === null ? null : endOfPage(playhead.world.seq)));
  const { found: enough, looked: most } = rest;

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
          if (sum >= enough || from - older.searchedTo >= most) break;
        }
      } catch (error) {
        if (!own.signal.aborted) setProblem(error as Error);
      }
      if (running.current === own) stop();
    },
    [stop, enough, most],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: another session has another log
  useEffect(() => {
    if (matches === null) return;
    const last = usePage.getState().live.seq;
    const from = until === null ? last : Math.min(until, last);
    change({ kind: "begin", from });
    if (from > 0) void run(matches, from);
    let heard = last;
    const leave = listen((notes) => {
      const fresh = notes.filter((note) => note.seq > heard && note.seq <= (until ?? note.seq) && matches(note));
      heard = Math.max(heard, notes.at(-1)?.seq ?? 0);
      if (fresh.length > 0) change({ kind: "newer", notes: fresh });
    });
    return () => {
      leave();
      stop();
    };
  }, [matches, run, stop, sessionId, until]);

  const goOn = useCallback(() => {
    if (matches !== null && found.searchedTo > 0) void run(matches, found.searchedTo);
  }, [matches, run, found.searchedTo]);
  return { ...found, isBusy, problem, stop, goOn };
}

/** Pages are searched whole: as long as one stays in a page, it is not searched anew. */
function endOfPage(seq: number): number {
  return (pageOf(Math.max(seq, 1)) + 1) * PAGE;
}
