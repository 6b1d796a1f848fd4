import { NODE, type Point } from "./layout";

/** How a line between two nodes is drawn. */
export interface Drawn {
  readonly path: string;
  /** Where its label is. */
  readonly label: Point;
  /** The three corners of the arrow head, as an SVG path. */
  readonly head: string;
}

const HEAD = 9;

/**
 * A curve between the borders of the nodes around two middles. It bends to its left by `bend`, so that lines of both
 * directions, and lines of several kinds, lie side by side. It ends where its head, so long, begins.
 */
export function curve(from: Point, to: Point, bend: number, headLength = HEAD): Drawn {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const across = { x: (to.y - from.y) / length, y: -(to.x - from.x) / length };
  const centre = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  const control = { x: centre.x + across.x * bend * 2, y: centre.y + across.y * bend * 2 };
  const start = borderTowards(from, control);
  const end = borderTowards(to, control);
  const along = direction(control, end);
  const foot = { x: end.x - along.x * headLength, y: end.y - along.y * headLength };
  const path = `M${at(start)}Q${at(control)} ${at(foot)}`;
  return { path, label: onCurve(start, control, end), head: arrow(foot, end) };
}

const LONG = 2 * NODE.width;

/**
 * Where the label of a line is. Nearer to its start than to its end, since in the middle those of both directions and
 * of neighbours would meet; but in the middle of one that is so long that it passes other nodes.
 */
function onCurve(start: Point, control: Point, end: Point): Point {
  const part = Math.hypot(end.x - start.x, end.y - start.y) > LONG ? 0.5 : 0.36;
  const [one, two, three] = [(1 - part) ** 2, 2 * part * (1 - part), part ** 2];
  return {
    x: one * start.x + two * control.x + three * end.x,
    y: one * start.y + two * control.y + three * end.y,
  };
}

/** Where the way from the middle of a node to a point leaves the node. */
function borderTowards(middle: Point, point: Point): Point {
  const [dx, dy] = [point.x - middle.x, point.y - middle.y];
  if (dx === 0 && dy === 0) return middle;
  const scale = Math.min(NODE.width / 2 / Math.abs(dx || 1e-9), NODE.height / 2 / Math.abs(dy || 1e-9));
  return scale >= 1 ? middle : { x: middle.x + dx * scale, y: middle.y + dy * scale };
}

function direction(from: Point, to: Point): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
}

function arrow(foot: Point, end: Point): string {
  const wing = { x: (foot.y - end.y) / 2, y: (end.x - foot.x) / 2 };
  return `M${at(end)}L${at({ x: foot.x + wing.x, y: foot.y + wing.y })}L${at({ x: foot.x - wing.x, y: foot.y - wing.y })}Z`;
}

function at({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
