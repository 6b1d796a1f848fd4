import { useCallback, useMemo } from "react";
import { Link } from "wouter";
import type { Parting } from "../../client/client";
import type { NameOf } from "../../history/telling";
import { count } from "../../parts/format";
import { addressOf } from "../../shell/addresses";
import { useTitles } from "../../state/titles";
import { Canvas } from "../timeline/Canvas";
import type { Read } from "../timeline/reader";
import { AXIS, lanesOf } from "../timeline/shapes";
import { type Times, useMarks } from "./differences";
import type { SessionLog } from "./logs";
import { relative, type Shared } from "./scale";
import { useAbsolute } from "./useScale";

interface SideProps {
  side: 0 | 1;
  log: SessionLog;
  read: Read;
  shared: Shared;
  origin: number;
  filter: string;
  marked: readonly Parting[] | null;
  times: Times | null;
  nameOf: NameOf;
  chosen: string;
  onChoose: (barId: string) => void;
  onShow: (range: Shared) => void;
  onFit: () => void;
  onEnd: () => void;
}

const TALLEST = 340;
const ignore = () => {};

/** The timeline of one of the two. */
export function Side(props: SideProps) {
  const { side, log, read, shared, origin, filter, marked, times, nameOf, chosen, onChoose, onShow, onFit, onEnd } =
    props;
  const { sessionId, agents, lastAt, firstSeq, lastSeq } = log;
  const lanes = useMemo(() => lanesOf(read.chart, agents, { filter, withQuiet: false }), [read.chart, agents, filter]);
  const name = "AB"[side] as string;
  const title = useTitles()(sessionId);
  const total = (lanes.at(-1)?.top ?? 0) + (lanes.at(-1)?.height ?? 0) + AXIS + 2;
  const label = `Timeline of ${name}, ${title}. Arrow keys move both, plus and minus zoom, Home shows all, End goes to the end; comma and full stop go from bar to bar.`;
  const to = useCallback((...parts: string[]) => addressOf(sessionId, ...parts), [sessionId]);
  const range = useAbsolute(shared, origin);
  const marks = useMarks({ side, sessionId, marked, times, nameOf });
  return (
    <div className="compare-timeline">
      <h3>
        <span className="compare-side" data-side={name.toLowerCase()}>
          {name}
        </span>
        <Link href={addressOf(sessionId)}>{title}</Link>
        <span className="quiet">{count(lastSeq - firstSeq + 1)} entries</span>
      </h3>
      <div className="compare-box" style={{ height: Math.min(Math.max(total, 100), TALLEST) }}>
        <Canvas
          drawn={{ chart: read.chart, lanes, now: lastAt, moment: null, to, origin, marks, label }}
          ranging={{ range, show: (next) => onShow(relative(next, origin)), follow: onEnd }}
          onFit={onFit}
          chosen={chosen}
          onChoose={onChoose}
          onMoment={ignore}
        />
      </div>
    </div>
  );
}
