import { useEffect, useRef, useState } from "react";
import { currentHistory } from "../../history/history";
import { listen, usePage } from "../../state/page";
import type { Range } from "./range";
import { ChartReader, NOTHING_READ, type Read } from "./reader";

/** How often what comes live is drawn. */
const LIVE_MS = 250;

/** The chart of what happened in a range of time; it grows as more happens in it. */
export function useChart(range: Range): Read & { again: () => void } {
  const [read, setRead] = useState(NOTHING_READ);
  const [turn, setTurn] = useState(0);
  const reader = useRef<ChartReader | null>(null);
  const wanted = useRef(range);
  wanted.current = range;
  const sessionId = usePage((page) => page.sessionId);
  const createdAt = usePage((page) => page.createdAt);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another session has another log, and a new turn reads again
  useEffect(() => {
    const own = new ChartReader(currentHistory(), setRead);
    reader.current = own;
    own.want(wanted.current);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const leave = listen(() => {
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
  }, [sessionId, createdAt, turn]);

  useEffect(() => reader.current?.want(range), [range]);
  return { ...read, again: () => setTurn(turn + 1) };
}
