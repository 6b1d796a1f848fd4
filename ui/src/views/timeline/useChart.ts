import { useEffect, useRef, useState } from "react";
import type { History } from "../../history/history";
import type { Range } from "./range";
import { ChartReader, NOTHING_READ, type Read } from "./reader";

/** How often what comes live is drawn. */
const LIVE_MS = 250;

/** The log that is drawn. */
export interface Drawable {
  readonly history: History;
  /** Have something done whenever the log has grown. */
  readonly onGrown: (grown: () => void) => () => void;
  /** How far back is read at most to know what went on when a range begins; without it, as far as it takes. */
  readonly furthest?: number;
}

/** The chart of what happened in a range of time; it grows as more happens in it. */
export function useChart(log: Drawable, range: Range): Read & { again: () => void } {
  const [read, setRead] = useState(NOTHING_READ);
  const [turn, setTurn] = useState(0);
  const reader = useRef<ChartReader | null>(null);
  const wanted = useRef(range);
  wanted.current = range;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn reads again
  useEffect(() => {
    const own = new ChartReader(log.history, setRead, log.furthest);
    reader.current = own;
    own.want(wanted.current);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = log.onGrown(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        own.want(wanted.current);
      }, LIVE_MS);
    });
    return () => {
      leave();
      clearTimeout(timer);
      own.close();
    };
  }, [log, turn]);

  useEffect(() => reader.current?.want(range), [range]);
  return { ...read, again: () => setTurn(turn + 1) };
}
