import { useCallback, useEffect, useMemo, useState } from "react";
import type { Parting } from "../../client/client";
import { useSelection } from "../../shell/addresses";
import type { Range } from "../timeline/range";
import type { Read } from "../timeline/reader";
import { workOf } from "../timeline/shapes";
import { useChart } from "../timeline/useChart";
import { seqOf, type Times } from "./differences";
import { type Both, type SessionLog, timesOf } from "./logs";
import { absolute, atEnd, joined, lastOf, type Origins, relative, type Shared, wholeOf } from "./scale";
import { useShared } from "./useShared";

/** Logs longer than this are shown around their first difference: all of it would be too much for one picture. */
const LONG = 10_000;
/** So many entries before and after it. */
const AROUND = 1_500;

/** What both timelines show, and how that is changed. */
export interface Scale {
  readonly shared: Shared;
  readonly origins: Origins;
  readonly charts: Both<Read & { again: () => void }>;
  /** Whether they can be lined up at the first difference, and whether they are. */
  readonly canAlign: boolean;
  readonly isAligned: boolean;
  readonly align: (at: string) => void;
  /** Whether only a part is shown, as the logs are long. */
  readonly isPart: boolean;
  readonly show: (range: Shared) => void;
  readonly fit: () => void;
  readonly end: () => void;
}

export function useScale(logs: Both<SessionLog>, first: Parting | null, times: Times | null): Scale {
  const [align, setAlign] = useSelection("align", "start");
  const partedA = timeOf(times?.[0], first?.seqA ?? null);
  const partedB = timeOf(times?.[1], first?.seqB ?? null);
  const canAlign = partedA !== null && partedB !== null;
  const isAligned = align === "difference" && canAlign;
  const originA = isAligned ? partedA : logs[0].firstAt;
  const originB = isAligned ? partedB : logs[1].firstAt;
  const origins = useMemo<Origins>(() => [originA, originB], [originA, originB]);
  const whole = useMemo(() => wholeOf(logs, origins), [logs, origins]);
  const isLong = logs.some(({ firstSeq, lastSeq }) => lastSeq - firstSeq > LONG);
  const start = useStart(logs, first, origins);
  const [picked, pick] = useShared();
  const [work, setWork] = useState<Shared | null>(null);
  const shared = picked ?? work ?? start ?? (isLong ? lastOf(whole) : whole);
  const chartA = useChart(logs[0], useAbsolute(shared, originA));
  const chartB = useChart(logs[1], useAbsolute(shared, originB));
  const [workA, workB] = [useWork(chartA, originA), useWork(chartB, originB)];
  const isRead = chartA.covered !== null && chartB.covered !== null;
  useEffect(() => {
    if (!isRead || isLong) return;
    const next = joined(workA, workB);
    setWork((before) => (before?.from === next?.from && before?.to === next?.to ? before : next));
  }, [isRead, isLong, workA, workB]);
  const fit = useCallback(() => pick(isLong ? whole : null), [pick, isLong, whole]);
  const end = useCallback(() => pick(atEnd(shared, whole)), [pick, shared, whole]);
  return {
    ...{ shared, origins, charts: [chartA, chartB], canAlign, isAligned, align: setAlign },
    ...{ isPart: isLong && picked === null, show: pick, fit, end },
  };
}

export function useAbsolute(shared: Shared, origin: number): Range {
  return useMemo(() => absolute(shared, origin), [shared, origin]);
}

/** The stretch around the first difference of long logs; null for others, and until it is known. */
function useStart(logs: Both<SessionLog>, first: Parting | null, origins: Origins): Shared | null {
  const [around, setAround] = useState<Both<readonly number[]> | null>(null);
  useEffect(() => {
    let isLeft = false;
    setAround(null);
    if (logs.every(({ firstSeq, lastSeq }) => lastSeq - firstSeq <= LONG)) return;
    const ask = async (side: 0 | 1) => {
      const { sessionId, firstSeq, lastSeq } = logs[side];
      const seq = (first === null ? null : seqOf(first, side)) ?? lastSeq;
      const ends = [Math.max(seq - AROUND, firstSeq), Math.min(seq + AROUND, lastSeq)];
      return [...(await timesOf(sessionId, ends)).values()];
    };
    Promise.all([ask(0), ask(1)]).then(
      (times) => isLeft || setAround(times),
      () => undefined, // then the whole is shown
    );
    return () => {
      isLeft = true;
    };
  }, [logs, first]);
  return useMemo(() => {
    if (around === null) return null;
    const [a, b] = around.map((times, side) => {
      const since = times.map((at) => at - (origins[side] as number));
      return since.length === 0 ? null : { from: Math.min(...since), to: Math.max(...since) + 1 };
    }) as [Shared | null, Shared | null];
    return joined(a, b);
  }, [around, origins]);
}

/** The time in which agents worked, as far as it was read. */
function useWork({ chart, covered }: Read, origin: number): Shared | null {
  return useMemo(() => {
    const work = covered === null ? null : workOf(chart);
    return work === null ? null : relative(work, origin);
  }, [chart, covered, origin]);
}

function timeOf(times: ReadonlyMap<number, number> | undefined, seq: number | null): number | null {
  return (seq === null ? undefined : times?.get(seq)) ?? null;
}
