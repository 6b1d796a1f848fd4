import type { ReactNode } from "react";
import { useLocation } from "wouter";
import { AXIS, type Lane, ROW } from "./shapes";

/** A place in the drawing that leads elsewhere. */
export interface Mark {
  readonly agentId: string;
  readonly at: number;
  readonly label: string;
  readonly address: string;
  /** Whether it is a line through all lanes too. */
  readonly isLine: boolean;
}

/** Its sign in the lane of its agent. */
export function MarkSign({ mark, lane, x }: { mark: Mark; lane: Lane | undefined; x: number }) {
  if (lane === undefined) return null;
  const sign = (
    <path d={`M${x} ${lane.top + 2}l${ROW / 4} ${ROW / 4}l${-ROW / 4} ${ROW / 4}l${-ROW / 4} ${-ROW / 4}z`} />
  );
  return mark.isLine ? <g className="timeline-mark">{sign}</g> : <MarkLink mark={mark}>{sign}</MarkLink>;
}

interface MarkLineProps {
  mark: Mark;
  x: number;
  width: number;
  height: number;
}

/** Its line, with a flag on the axis. */
export function MarkLine({ mark, x, width, height }: MarkLineProps) {
  if (!mark.isLine || x < 0 || x > width) return null;
  return (
    <MarkLink mark={mark}>
      <line x1={x} x2={x} y1={0} y2={height} />
      <path d={`M${x} 2h${x + 16 > width ? -14 : 14}l-4 5l4 5H${x}z`} data-axis="" />
      <rect x={x - 5} y={0} width={10} height={AXIS} className="timeline-grip" />
    </MarkLink>
  );
}

function MarkLink({ mark, children }: { mark: Mark; children: ReactNode }) {
  const [, go] = useLocation();
  return (
    <a
      className="timeline-mark"
      href={mark.address}
      aria-label={mark.label}
      onClick={(event) => {
        event.preventDefault();
        go(mark.address);
      }}
    >
      <title>{mark.label}</title>
      {children}
    </a>
  );
}
