import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { World } from "../../projection/world";
import { useSelection } from "../../shell/addresses";
import { useIsPast, usePage } from "../../state/page";
import { fitting, type Range, read, spanOf, written } from "./range";

const TICK_MS = 250;
const WRITE_MS = 300;
/** A session in which nothing happened for so long is shown as a whole, as far as it worked. */
const ASLEEP_SECONDS = 60;
const FIRST_SPAN = 300;
/** How much of the range is kept free for what comes. */
const AHEAD = 0.03;

/** The range, or the length of one that ends now. */
type Chosen = Range | number;

export interface Ranging {
  readonly range: Range;
  readonly isFollowing: boolean;
  /** Show this range; with `keep` one that follows goes on to, as long as this one. */
  readonly show: (range: Range, keep?: "following") => void;
  readonly follow: () => void;
  /** Show this stretch, in which agents worked, as long as nobody has chosen one; what follows stays, if it shows work. */
  readonly suggest: (work: Range) => void;
}

function parsed(text: string): Chosen | null {
  if (!text.startsWith("live-")) return read(text);
  const span = Number(text.slice(5));
  return span > 0.01 && span < 1e8 ? span : null;
}

function now(): number {
  return Math.max(Date.now() / 1000, usePage.getState().live.at);
}

/** From the beginning of the session to the last that happened in it. */
export function whole(): Range {
  const { createdAt, live } = usePage.getState();
  return fitting(createdAt > 0 ? createdAt : live.at - FIRST_SPAN, live.at);
}

/** When an agent did something for the last time; that the session was opened again is no work. */
export function lastWork({ agents, at }: World): number {
  let last = 0;
  for (const { lastActivityAt, runningTasks } of agents.values()) {
    if (runningTasks.length > 0) return at;
    last = Math.max(last, lastActivityAt);
  }
  return last > 0 ? last : at;
}

function first(): Chosen {
  const { live, createdAt } = usePage.getState();
  if (now() - lastWork(live) > ASLEEP_SECONDS) return whole();
  return createdAt > 0 ? Math.min(Math.max(now() - createdAt, 10), FIRST_SPAN) : FIRST_SPAN;
}

/** The time that is shown; it is in the address, and moves on by itself while it follows. */
export function useRange(): Ranging {
  const [text, setText] = useSelection("range");
  const [chosen, setChosen] = useState<Chosen>(() => parsed(text) ?? first());
  const [end, setEnd] = useState(now);
  const last = useRef(text);
  const isFollowing = typeof chosen === "number";

  useEffect(() => {
    if (text === last.current) return;
    last.current = text;
    setChosen(parsed(text) ?? first());
  }, [text]);

  const isMoved = useRef(false);
  useEffect(() => {
    if (!isMoved.current) return;
    const timer = setTimeout(() => {
      last.current = typeof chosen === "number" ? `live-${chosen.toFixed(2)}` : written(chosen);
      setText(last.current);
    }, WRITE_MS);
    return () => clearTimeout(timer);
  }, [chosen, setText]);

  useEffect(() => {
    if (!isFollowing) return;
    setEnd(now());
    const timer = setInterval(() => setEnd(now()), TICK_MS);
    return () => clearInterval(timer);
  }, [isFollowing]);

  const range = useMemo(
    () => (typeof chosen === "number" ? { from: end - chosen * (1 - AHEAD), to: end + chosen * AHEAD } : chosen),
    [chosen, end],
  );
  const choose = useCallback((next: Chosen) => {
    isMoved.current = true;
    setChosen(next);
  }, []);
  const isPast = useIsPast();
  const shown = useRef(range);
  shown.current = range;
  useEffect(() => {
    // In the past nothing moves on by itself: the line of the moment could not be taken hold of.
    if (isPast) setChosen((before) => (typeof before === "number" ? shown.current : before));
  }, [isPast]);
  const show = useCallback(
    (next: Range, keep?: "following") => choose(keep && isFollowing ? spanOf(next) : next),
    [choose, isFollowing],
  );
  const follow = useCallback(() => choose(Math.min(spanOf(range), 3_600)), [choose, range]);
  const isOpening = useRef(true);
  const suggest = useCallback((work: Range) => {
    if (isMoved.current || last.current !== "") return;
    // Not all that agents are active with is drawn: a range that follows may begin after the last bar.
    const isBlank = isOpening.current && work.to < shown.current.from;
    isOpening.current = false;
    setChosen((before) => (typeof before !== "number" ? work : isBlank ? whole() : before));
  }, []);
  return { range, isFollowing, show, follow, suggest };
}
