import { memo } from "react";
import { words } from "../../parts/format";
import type { Arrow, BarKind, Chart } from "./chart";
import type { Lane, Shape } from "./shapes";
import { ROW } from "./shapes";

export const KINDS: readonly (readonly [BarKind, string])[] = [
  ["task", "task"],
  ["model", "model call"],
  ["tool", "tool call"],
  ["wait", "wait"],
  ["sleep", "sleep"],
  ["pause", "pause"],
];

const LETTER = 6.3;

/** Each kind has a pattern beside its colour, so that nobody needs to tell colours apart. */
export function Patterns() {
  return (
    <svg className="timeline-patterns" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="timeline-tool" width="5" height="5" patternUnits="userSpaceOnUse">
          <rect className="timeline-fill-tool" width="5" height="5" />
          <path className="timeline-stroke" d="M0 5L5 0M-1 1L1 -1M4 6L6 4" />
        </pattern>
        <pattern id="timeline-wait" width="6" height="6" patternUnits="userSpaceOnUse">
          <rect className="timeline-fill-wait" width="6" height="6" />
          <circle className="timeline-dot" cx="3" cy="3" r="1.2" />
        </pattern>
        <pattern id="timeline-sleep" width="6" height="6" patternUnits="userSpaceOnUse">
          <rect className="timeline-fill-sleep" width="6" height="6" />
          <path className="timeline-line-sleep" d="M0 3H6" />
        </pattern>
        <pattern id="timeline-pause" width="6" height="6" patternUnits="userSpaceOnUse">
          <rect className="timeline-fill-pause" width="6" height="6" />
          <path className="timeline-line-pause" d="M3 0V6" />
        </pattern>
        <marker id="timeline-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">
          <path d="M0 0L8 4L0 8z" className="timeline-arrow-head" />
        </marker>
      </defs>
    </svg>
  );
}

interface LaneBarsProps {
  lane: Lane;
  shapes: readonly Shape[];
  chosen: string;
}

/** The bars of one agent. */
export const LaneBars = memo(function LaneBars({ lane, shapes, chosen }: LaneBarsProps) {
  return (
    <g transform={`translate(0 ${lane.top})`}>
      {shapes.map((shape) => (
        <ShapeBar key={shape.key} shape={shape} isChosen={shape.bar?.id === chosen} />
      ))}
    </g>
  );
});

function ShapeBar({ shape, isChosen }: { shape: Shape; isChosen: boolean }) {
  const { kind, x, y, width, height, bar, count } = shape;
  const isBand = kind === "sleep" || kind === "pause";
  const [left, right] = [Math.max(x, 0), x + width];
  const room = Math.floor((right - left - 8) / LETTER);
  const label = bar?.label ?? `${count} ${words(kind)}s`;
  const isTold = (kind === "task" || isBand) && room >= 3;
  return (
    <g className="timeline-bar" data-bar={bar?.id} data-kind={kind} data-chosen={isChosen} data-outcome={bar?.outcome}>
      <title>{bar === null ? `${label}: zoom in to tell them apart` : label}</title>
      <rect x={x} y={y} width={width} height={height} rx={Math.min(3, height / 3)} />
      {isTold && (
        <text x={left + 5} y={isBand ? y + height - 5 : y + 11}>
          {label.length > room ? `${label.slice(0, room - 1)}…` : label}
        </text>
      )}
    </g>
  );
}

interface ArrowsProps {
  chart: Chart;
  arrows: readonly Arrow[];
  lanes: ReadonlyMap<string, Lane>;
  xOf: (at: number) => number;
}

/** What led to what. */
export function Arrows({ chart, arrows, lanes, xOf }: ArrowsProps) {
  return (
    <g className="timeline-arrows">
      {arrows.map((arrow) => {
        const path = pathOf(arrow, chart, lanes, xOf);
        return (
          path && (
            <path key={arrow.id} d={path} data-kind={arrow.kind} markerEnd="url(#timeline-arrow)">
              <title>{`${arrow.kind}${arrow.label && `: ${arrow.label}`}`}</title>
            </path>
          )
        );
      })}
    </g>
  );
}

function pathOf(
  arrow: Arrow,
  chart: Chart,
  lanes: ReadonlyMap<string, Lane>,
  xOf: (at: number) => number,
): string | null {
  const [from, to] = [chart.bars.get(arrow.from), chart.bars.get(arrow.to)];
  const [source, target] = [lanes.get(from?.agentId ?? ""), lanes.get(to?.agentId ?? "")];
  if (!from || !to || !source || !target) return null;
  const [x1, x2] = [xOf(arrow.fromAt), xOf(arrow.toAt)];
  const y1 = source.top + from.slot * ROW + ROW / 2 + 3;
  const y2 = target.top + to.slot * ROW + ROW / 2 + 3;
  const bend = Math.min(Math.max(Math.abs(x2 - x1) / 2, 14), 80);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

/** What the bars mean, and what is to be said of the drawing. */
export function Legend({ note }: { note: string }) {
  return (
    <p className="timeline-legend">
      {KINDS.map(([kind, label]) => (
        <span key={kind} className="timeline-key">
          <svg width="22" height="12" aria-hidden="true">
            <g className="timeline-bar" data-kind={kind}>
              <rect x="1" y="1" width="20" height="10" rx="2" />
            </g>
          </svg>
          {label}
        </span>
      ))}
      <span className="timeline-note" role="status">
        {note}
      </span>
    </p>
  );
}
