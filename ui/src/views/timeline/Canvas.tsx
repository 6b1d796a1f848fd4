import { type KeyboardEvent, useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import type { Chart } from "./chart";
import { Arrows, LaneBars } from "./Drawing";
import { useGestures } from "./gestures";
import { type Mark, MarkLine, MarkSign } from "./Marks";
import { moved, ticks, zoomed } from "./range";
import { AXIS, chainOf, type Lane, shapesWithin } from "./shapes";
import type { Ranging } from "./useRange";

const MOST_SHAPES = 900;
const FEW_ARROWS = 60;
const TICK_PX = 90;

/** What is drawn of a session, and where its parts lead. */
export interface Drawn {
  readonly chart: Chart;
  readonly lanes: readonly Lane[];
  /** Until when what goes on is drawn. */
  readonly now: number;
  /** The moment that is marked; what came after it is pale. */
  readonly moment: number | null;
  /** Makes addresses in the session. */
  readonly to: (...parts: string[]) => string;
  /** What the axis counts from; without it, it shows the time of day. */
  readonly origin?: number;
  readonly marks?: readonly Mark[];
  readonly label: string;
}

const NO_MARKS: readonly Mark[] = [];

interface CanvasProps {
  drawn: Drawn;
  ranging: Pick<Ranging, "range" | "show" | "follow">;
  onFit: () => void;
  chosen: string;
  onChoose: (barId: string) => void;
  /** The moment was moved to this time. */
  onMoment: (time: number) => void;
}

/** The drawing itself: only what is in sight of it exists. `Patterns` have to be on the page once. */
export function Canvas({ drawn, ranging, onFit, chosen, onChoose, onMoment }: CanvasProps) {
  const { chart, lanes, now, moment, to, label, origin = null, marks = NO_MARKS } = drawn;
  const { range, show, follow } = ranging;
  const plot = useId();
  const box = useRef<HTMLElement>(null);
  const size = useSize(box);
  const [scroll, setScroll] = useState(0);
  const left = size.width < 600 ? 84 : 130;
  const width = Math.max(size.width - left, 50);
  const total = (lanes.at(-1)?.top ?? 0) + (lanes.at(-1)?.height ?? 0);
  const inSight = useMemo(
    () => lanes.filter(({ top, height }) => top + height >= scroll && top <= scroll + size.height),
    [lanes, scroll, size.height],
  );
  const shapes = useMemo(
    () => shapesWithin(inSight, { ...range, width, now }, MOST_SHAPES),
    [inSight, range, width, now],
  );
  const xOf = useCallback(
    (at: number) => ((at - range.from) / (range.to - range.from)) * width,
    [range.from, range.to, width],
  );
  const arrows = useArrows(chart, range, chosen);
  const byAgent = useMemo(() => new Map(lanes.map((lane) => [lane.agentId, lane])), [lanes]);
  const gestures = useGestures({
    box,
    range,
    left,
    width,
    onZoom: (next) => show(next, "following"),
    onPan: (next) => show(next),
    onChoose: (barId) => onChoose(barId ?? ""),
    onMoment,
  });

  function press(event: KeyboardEvent) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => show(moved(range, -0.1)),
      ArrowRight: () => show(moved(range, 0.1)),
      "+": () => show(zoomed(range, 1 / 1.5), "following"),
      "=": () => show(zoomed(range, 1 / 1.5), "following"),
      "-": () => show(zoomed(range, 1.5), "following"),
      Home: onFit,
      End: follow,
      ".": () => onChoose(besides(lanes, chosen, 1)),
      ",": () => onChoose(besides(lanes, chosen, -1)),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }

  return (
    <section
      ref={box}
      className="timeline-box"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys are those of the timeline
      tabIndex={0}
      onKeyDown={press}
      onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
    >
      <div className="timeline-space" style={{ height: total + AXIS }}>
        {/* biome-ignore lint/a11y/useSemanticElements: there is no other element for a group of drawings with links */}
        <svg
          className="timeline-svg"
          width={size.width}
          height={size.height}
          {...gestures}
          role="group"
          aria-label={`${lanes.length} agents`}
        >
          <clipPath id={plot}>
            <rect x={0} y={AXIS} width={width} height={Math.max(size.height - AXIS, 0)} />
          </clipPath>
          <g transform={`translate(${left} 0)`}>
            <Axis range={range} origin={origin} width={width} height={size.height} xOf={xOf} />
            <g clipPath={`url(#${plot})`}>
              <g transform={`translate(0 ${AXIS - scroll})`}>
                {inSight.map((lane) => (
                  <LaneBars key={lane.agentId} lane={lane} shapes={shapes.get(lane.agentId) ?? []} chosen={chosen} />
                ))}
                <Arrows chart={chart} arrows={arrows} lanes={byAgent} xOf={xOf} />
                {marks.map((mark) => (
                  <MarkSign key={mark.agentId} mark={mark} lane={byAgent.get(mark.agentId)} x={xOf(mark.at)} />
                ))}
              </g>
            </g>
            {marks.map((mark) => (
              <MarkLine key={mark.agentId} mark={mark} x={xOf(mark.at)} width={width} height={size.height} />
            ))}
            {moment !== null && <Moment x={xOf(moment)} width={width} height={size.height} />}
          </g>
          <Names lanes={inSight} to={to} left={left} top={AXIS - scroll} height={size.height} />
        </svg>
      </div>
    </section>
  );
}

interface AxisProps {
  range: Ranging["range"];
  origin: number | null;
  width: number;
  height: number;
  xOf: (at: number) => number;
}

function Axis({ range, origin, width, height, xOf }: AxisProps) {
  return (
    <g className="timeline-axis">
      <rect x={0} y={0} width={width} height={AXIS} data-axis="" className="timeline-axis-ground" />
      {ticks(range, width / TICK_PX, origin).map(({ at, label }) => (
        <g key={at} transform={`translate(${xOf(at)} 0)`}>
          <line y1={AXIS - 5} y2={height} />
          <text x={4} y={15} data-axis="">
            {label}
          </text>
        </g>
      ))}
    </g>
  );
}

/** The moment that the page shows; what came after it is pale. */
function Moment({ x, width, height }: { x: number; width: number; height: number }) {
  const shown = Math.max(x, 0);
  return (
    <g className="timeline-moment">
      {shown < width && <rect x={shown} y={AXIS} width={width - shown} height={height} className="timeline-later" />}
      {x >= 0 && x <= width && (
        <g data-moment="">
          <title>The moment that is shown. Drag it to travel.</title>
          <rect x={x - 7} y={0} width={14} height={height} className="timeline-grip" />
          <line x1={x} x2={x} y1={0} y2={height} />
          <path d={`M${x - 6} 2h12v8l-6 6l-6 -6z`} />
        </g>
      )}
    </g>
  );
}

interface NamesProps {
  lanes: readonly Lane[];
  to: Drawn["to"];
  left: number;
  top: number;
  height: number;
}

function Names({ lanes, to, left, top, height }: NamesProps) {
  const [, go] = useLocation();
  const room = Math.floor((left - 16) / 7);
  return (
    <g className="timeline-names">
      <rect x={0} y={0} width={left} height={height} className="timeline-names-ground" />
      <line x1={left} x2={left} y1={0} y2={height} />
      {lanes.map((lane) => {
        const y = top + lane.top;
        const address = to("agents", lane.agentId);
        return (
          <g key={lane.agentId}>
            <line x1={0} x2={left} y1={y + lane.height} y2={y + lane.height} />
            <a
              href={address}
              onClick={(event) => {
                event.preventDefault();
                go(address);
              }}
            >
              <title>{lane.name}</title>
              <text x={8} y={y + 21}>
                {lane.name.length > room ? `${lane.name.slice(0, room - 1)}…` : lane.name}
              </text>
            </a>
          </g>
        );
      })}
      <rect x={0} y={0} width={left} height={AXIS} className="timeline-names-ground" />
    </g>
  );
}

/** All arrows in sight if they are few; else those of the chain of what is chosen. */
function useArrows(chart: Chart, range: Ranging["range"], chosen: string) {
  return useMemo(() => {
    const seen = [...chart.arrows.values()].filter((each) => each.toAt >= range.from && each.fromAt <= range.to);
    if (chosen !== "" && chart.bars.has(chosen)) {
      const chain = chainOf(chart, chosen);
      return seen.filter(({ id }) => chain.has(id)).slice(0, 500);
    }
    return seen.length <= FEW_ARROWS ? seen : [];
  }, [chart, range, chosen]);
}

/** The bar of the same agent that begins next, or began before; the first of all if none is chosen. */
function besides(lanes: readonly Lane[], chosen: string, step: 1 | -1): string {
  for (const { bars } of lanes) {
    const index = bars.findIndex((bar) => bar.id === chosen);
    if (index >= 0) return bars[index + step]?.id ?? chosen;
  }
  return lanes[0]?.bars[0]?.id ?? "";
}

function useSize(box: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 900, height: 480 });
  useEffect(() => {
    const element = box.current;
    if (element === null || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = element;
      if (width > 0 && height > 0) setSize({ width, height });
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [box]);
  return size;
}
