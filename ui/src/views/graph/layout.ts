import dagre from "@dagrejs/dagre";
import { USER } from "../../projection/coordination";

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where the upper left corner of each node is. */
export type Positions = ReadonlyMap<string, Point>;

export interface Line {
  readonly from: string;
  readonly to: string;
}

export const NODE = { width: 208, height: 88 };
const GAP = { x: 170, y: 40 };
const CELL = { x: NODE.width + GAP.x / 3, y: NODE.height + GAP.y };
/** Groups with more nodes or lines than these are laid out in a simpler way: dagre would take seconds. */
const MOST = { nodes: 100, lines: 300 };

/**
 * Where everything is at first: agents that have to do with each other side by side in the direction of their lines,
 * such groups one beside the other, agents without lines in rows below, and the user to the left of all.
 */
export function arranged(nodes: readonly string[], lines: readonly Line[]): Positions {
  const agents = nodes.filter((id) => id !== USER);
  const isHere = new Set(agents);
  const between = firstWays(lines.filter(({ from, to }) => isHere.has(from) && isHere.has(to) && from !== to));
  const groups = connected(agents, between);
  const blocks = groups.filter(({ ids }) => ids.length > 1).map(({ ids, lines: own }) => laidOut(ids, own));
  const singles = groups.filter(({ ids }) => ids.length === 1).flatMap(({ ids }) => ids);
  const positions = packed(singles.length > 0 ? [...blocks, inRows(singles)] : blocks);
  if (nodes.includes(USER)) positions.set(USER, besides(positions));
  return positions;
}

/** Positions for all nodes: those that have one keep it, the others get one near those they have to do with. */
export function extended(positions: Positions, nodes: readonly string[], lines: readonly Line[]): Positions {
  const missing = nodes.filter((id) => !positions.has(id));
  if (missing.length === 0) return positions;
  if (positions.size === 0) return arranged(nodes, lines);
  const near = neighbours(lines);
  const after = new Map(positions);
  const taken = new Taken(positions.values());
  const bottom = Math.max(...[...positions.values()].map(({ y }) => y)) + CELL.y;
  const left = Math.min(...[...positions.values()].map(({ x }) => x));
  for (const id of missing) {
    const friends = (near.get(id) ?? []).flatMap((friend) => after.get(friend) ?? []);
    const wish = friends.length > 0 ? middle(friends) : { x: left, y: bottom };
    const place = taken.nearestTo(wish);
    after.set(id, place);
    taken.add(place);
  }
  return after;
}

/** What was kept from the last time is used again unless most of what is there now has come since. */
export function resumed(kept: Positions, nodes: readonly string[], lines: readonly Line[]): Positions {
  const known = nodes.filter((id) => kept.has(id)).length;
  return known * 2 < nodes.length ? arranged(nodes, lines) : extended(kept, nodes, lines);
}

/** Of lines in both directions the first: what came back says nothing about who is to be on the left. */
function firstWays(lines: readonly Line[]): Line[] {
  const pairs = new Map<string, Line>();
  for (const line of lines) {
    const pair = line.from < line.to ? `${line.from} ${line.to}` : `${line.to} ${line.from}`;
    if (!pairs.has(pair)) pairs.set(pair, line);
  }
  return [...pairs.values()];
}

function neighbours(lines: readonly Line[]): Map<string, string[]> {
  const near = new Map<string, string[]>();
  for (const { from, to } of lines) {
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      const known = near.get(one);
      if (known === undefined) near.set(one, [other]);
      else known.push(other);
    }
  }
  return near;
}

function connected(nodes: readonly string[], lines: readonly Line[]): { ids: string[]; lines: Line[] }[] {
  const near = neighbours(lines);
  const groupOf = new Map<string, { ids: string[]; lines: Line[] }>();
  for (const first of nodes) {
    if (groupOf.has(first)) continue;
    const group = { ids: [first], lines: [] };
    groupOf.set(first, group);
    for (const id of group.ids) {
      for (const other of near.get(id) ?? []) {
        if (groupOf.has(other)) continue;
        groupOf.set(other, group);
        group.ids.push(other);
      }
    }
  }
  for (const line of lines) groupOf.get(line.from)?.lines.push(line);
  return [...new Set(groupOf.values())];
}

/** One connected group, laid out from left to right. */
function laidOut(ids: readonly string[], lines: readonly Line[]): Map<string, Point> {
  if (ids.length > MOST.nodes || lines.length > MOST.lines) return folded(inLayers(ids, lines));
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: GAP.y, ranksep: GAP.x });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { ...NODE });
  for (const { from, to } of lines) graph.setEdge(from, to);
  dagre.layout(graph);
  const places = new Map<string, Point>();
  for (const id of ids) {
    const { x = 0, y = 0 } = graph.node(id);
    places.set(id, { x: Math.round(x - NODE.width / 2), y: Math.round(y - NODE.height / 2) });
  }
  return folded(places);
}

/** A column for each number of steps from the node with most lines; neighbours of neighbours are near each other. */
function inLayers(ids: readonly string[], lines: readonly Line[]): Map<string, Point> {
  const near = neighbours(lines);
  const [first = ""] = [...ids].sort((a, b) => (near.get(b)?.length ?? 0) - (near.get(a)?.length ?? 0));
  const depths = new Map([[first, 0]]);
  const places = new Map<string, Point>();
  const filled: number[] = [];
  for (const [id, depth] of depths) {
    const row = filled[depth] ?? 0;
    filled[depth] = row + 1;
    places.set(id, { x: depth * (NODE.width + GAP.x), y: row * CELL.y });
    for (const other of near.get(id) ?? []) {
      if (!depths.has(other)) depths.set(other, depth + 1);
    }
  }
  for (const [id, { x, y }] of places) {
    const rows = filled[depths.get(id) ?? 0] ?? 0;
    places.set(id, { x, y: y - (rows * CELL.y) / 2 });
  }
  return places;
}

/** A column that is much longer than the whole is wide is broken into several. */
function folded(places: Map<string, Point>): Map<string, Point> {
  const longest = Math.max(8, Math.ceil(Math.sqrt(places.size) * 1.3));
  const columns = new Map<number, string[]>();
  for (const [id, { x }] of places) columns.set(x, [...(columns.get(x) ?? []), id]);
  if ([...columns.values()].every((ids) => ids.length <= longest)) return places;
  const after = new Map<string, Point>();
  let x = 0;
  for (const [, ids] of [...columns].sort(([a], [b]) => a - b)) {
    ids.sort((a, b) => (places.get(a)?.y ?? 0) - (places.get(b)?.y ?? 0));
    const parts = Math.ceil(ids.length / longest);
    const height = Math.ceil(ids.length / parts);
    ids.forEach((id, index) => {
      const row = index % height;
      after.set(id, { x: x + Math.floor(index / height) * CELL.x, y: (row - height / 2) * CELL.y });
    });
    x += (parts - 1) * CELL.x + NODE.width + GAP.x;
  }
  return after;
}

function inRows(ids: readonly string[]): Map<string, Point> {
  const across = Math.max(4, Math.ceil(Math.sqrt(ids.length)));
  return new Map(
    ids.map((id, index) => [id, { x: (index % across) * CELL.x, y: Math.floor(index / across) * CELL.y }]),
  );
}

/** Blocks one beside the other, in as many rows as make the whole a little wider than high. */
function packed(blocks: readonly Map<string, Point>[]): Map<string, Point> {
  const sized = blocks.map((block) => ({ block, ...extent(block.values()) }));
  const area = sized.reduce((sum, { width, height }) => sum + (width + GAP.x) * (height + GAP.y * 2), 0);
  const widest = Math.max(Math.sqrt(area * 1.8), ...sized.map(({ width }) => width));
  const positions = new Map<string, Point>();
  let [x, y, high] = [0, 0, 0];
  for (const { block, left, top, width, height } of sized) {
    if (x > 0 && x + width > widest) [x, y, high] = [0, y + high + GAP.y * 2, 0];
    for (const [id, point] of block) positions.set(id, { x: point.x - left + x, y: point.y - top + y });
    x += width + GAP.x;
    high = Math.max(high, height);
  }
  return positions;
}

function besides(positions: Positions): Point {
  if (positions.size === 0) return { x: 0, y: 0 };
  const { left, top, height } = extent(positions.values());
  return { x: left - NODE.width - GAP.x, y: Math.round(top + (height - NODE.height) / 2) };
}

/** What nodes at these points take up together. */
export function extent(points: Iterable<Point>): { left: number; top: number; width: number; height: number } {
  const all = [...points];
  const [left, top] = [Math.min(...all.map(({ x }) => x)), Math.min(...all.map(({ y }) => y))];
  const width = Math.max(...all.map(({ x }) => x)) - left + NODE.width;
  return { left, top, width, height: Math.max(...all.map(({ y }) => y)) - top + NODE.height };
}

function middle(points: readonly Point[]): Point {
  const sum = points.reduce((a, b) => ({ x: a.x + b.x, y: a.y + b.y }));
  return { x: Math.round(sum.x / points.length), y: Math.round(sum.y / points.length) };
}

/** The places that are taken, and which is the nearest that is not. */
class Taken {
  readonly #cells = new Map<string, Point[]>();

  constructor(points: Iterable<Point>) {
    for (const point of points) this.add(point);
  }

  add(point: Point): void {
    const key = `${Math.floor(point.x / CELL.x)} ${Math.floor(point.y / CELL.y)}`;
    this.#cells.set(key, [...(this.#cells.get(key) ?? []), point]);
  }

  nearestTo(wish: Point): Point {
    for (let ring = 0; ; ring += 1) {
      const [best] = around(wish, ring)
        .filter((place) => this.#isFree(place))
        .sort((a, b) => distance(a, wish) - distance(b, wish));
      if (best !== undefined) return best;
    }
  }

  #isFree({ x, y }: Point): boolean {
    const [column, row] = [Math.floor(x / CELL.x), Math.floor(y / CELL.y)];
    for (const dx of [-1, 0, 1]) {
      for (const dy of [-1, 0, 1]) {
        const points = this.#cells.get(`${column + dx} ${row + dy}`) ?? [];
        if (points.some((point) => Math.abs(point.x - x) < CELL.x && Math.abs(point.y - y) < CELL.y)) return false;
      }
    }
    return true;
  }
}

function around({ x, y }: Point, ring: number): Point[] {
  const places: Point[] = [];
  for (let dx = -ring; dx <= ring; dx += 1) {
    for (let dy = -ring; dy <= ring; dy += 1) {
      if (Math.max(Math.abs(dx), Math.abs(dy)) === ring) places.push({ x: x + dx * CELL.x, y: y + dy * CELL.y });
    }
  }
  return places;
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
