import type { Agent } from "../../projection/world";
import { nameIn } from "../../state/names";
import type { Arrow, Bar, BarKind, Chart } from "./chart";
import { fitting, type Range } from "./range";

/** The height of the axis above the lanes, and of a row of bars. */
export const AXIS = 24;
export const ROW = 28;
const LANE_ROOM = 8;
const STEPS_TOP = 14;
const STEPS_HEIGHT = 9;
/** What is drawn over what. */
const LAYERS: Record<BarKind, number> = { sleep: 0, pause: 0, task: 1, model: 2, tool: 2, wait: 3 };

/** The row, or rows, of one agent. */
export interface Lane {
  readonly agentId: string;
  readonly name: string;
  /** In the order of their starts. */
  readonly bars: readonly Bar[];
  readonly rows: number;
  readonly top: number;
  readonly height: number;
}

/** Something to be drawn, in pixels; `bar` is null where several that are too short to be seen became one. */
export interface Shape {
  readonly key: string;
  readonly kind: BarKind;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly bar: Bar | null;
  readonly count: number;
}

/** The lanes of agents, from top to bottom; those of agents that did nothing only if they are asked for. */
export function lanesOf(
  chart: Chart,
  agents: ReadonlyMap<string, Pick<Agent, "name">>,
  { filter, withQuiet }: { filter: string; withQuiet: boolean },
): Lane[] {
  const byAgent = new Map<string, Bar[]>();
  for (const agentId of agents.keys()) byAgent.set(agentId, []);
  for (const bar of chart.bars.values()) {
    const known = byAgent.get(bar.agentId);
    if (known) known.push(bar);
    else byAgent.set(bar.agentId, [bar]);
  }
  const wanted = filter.trim().toLowerCase();
  const lanes: Lane[] = [];
  let top = 0;
  for (const [agentId, bars] of byAgent) {
    const name = nameIn(agents, agentId);
    if (wanted !== "" && !name.toLowerCase().includes(wanted) && !agentId.toLowerCase().includes(wanted)) continue;
    if (bars.length === 0 && !withQuiet) continue;
    bars.sort((one, other) => one.start - other.start);
    const rows = bars.reduce((most, bar) => (bar.kind === "task" ? Math.max(most, bar.slot + 1) : most), 1);
    const height = rows * ROW + LANE_ROOM;
    lanes.push({ agentId, name, bars, rows, top, height });
    top += height;
  }
  return lanes;
}

export interface View extends Range {
  readonly width: number;
  /** Until when what goes on is drawn. */
  readonly now: number;
}

/** What is to be drawn of a lane. What is narrower than `least` pixels becomes one with its neighbours. */
export function shapesOf(lane: Lane, view: View, least: number): Shape[] {
  const scale = view.width / (view.to - view.from);
  const bars = new Map(lane.bars.filter((bar) => bar.kind === "task").map((bar) => [bar.id, bar]));
  const depth = depthsOf(lane);
  /** Where the last shape of a track stands that others can become one with. */
  const tracks = new Map<string, number>();
  const shapes: Shape[] = [];
  for (const bar of lane.bars) {
    const end = bar.end ?? Math.max(view.now, bar.start);
    if (end < view.from || bar.start > view.to) continue;
    const x = Math.max((bar.start - view.from) * scale, -4);
    const width = Math.max(Math.min((end - view.from) * scale, view.width + 4) - x, 0);
    const place = placeOf(bar, lane, bars.get(bar.parent ?? ""), depth.get(bar.parent ?? "") ?? 1);
    const track = `${bar.kind}\n${place.y}`;
    const index = width < least ? (tracks.get(track) ?? -1) : -1;
    const last = shapes[index];
    if (last !== undefined && x - (last.x + last.width) < least) {
      shapes[index] = { ...last, width: Math.max(last.width, x + least - last.x), bar: null, count: last.count + 1 };
      continue;
    }
    if (width < least) tracks.set(track, shapes.length);
    else tracks.delete(track);
    const drawn = { key: bar.id, kind: bar.kind, x, width: Math.max(width, least), ...place };
    shapes.push({ ...drawn, bar, count: 1 });
  }
  return shapes.sort((one, other) => LAYERS[one.kind] - LAYERS[other.kind]);
}

/** How many steps at most go on at once in each loop. */
function depthsOf(lane: Lane): Map<string, number> {
  const depths = new Map<string, number>();
  for (const { parent, slot } of lane.bars) {
    if (parent !== null) depths.set(parent, Math.max(depths.get(parent) ?? 1, slot + 1));
  }
  return depths;
}

function placeOf(bar: Bar, lane: Lane, loop: Bar | undefined, depth: number): { y: number; height: number } {
  if (bar.kind === "task") return { y: LANE_ROOM / 2 + bar.slot * ROW, height: ROW - 3 };
  if (bar.kind === "sleep" || bar.kind === "pause") return { y: 2, height: lane.height - 4 };
  const top = LANE_ROOM / 2 + (loop?.slot ?? 0) * ROW + STEPS_TOP;
  if (bar.kind === "wait") return { y: top, height: STEPS_HEIGHT };
  const height = STEPS_HEIGHT / Math.min(depth, 4);
  return { y: top + Math.min(bar.slot, 3) * height, height };
}

/** What is to be drawn of the lanes in sight: never more than `most` shapes, so that drawing stays quick. */
export function shapesWithin(lanes: readonly Lane[], view: View, most: number): Map<string, Shape[]> {
  for (let least = 2; ; least *= 2) {
    const shapes = new Map(lanes.map((lane) => [lane.agentId, shapesOf(lane, view, least)]));
    let sum = 0;
    for (const each of shapes.values()) sum += each.length;
    if (sum <= most || least > 64) return shapes;
  }
}

/** The time in which agents worked; null if none did. */
export function workOf(chart: Chart): Range | null {
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  for (const { kind, start, end } of chart.bars.values()) {
    if (kind !== "task") continue;
    first = Math.min(first, start);
    last = Math.max(last, end ?? chart.at);
  }
  return last === 0 ? null : fitting(first, last);
}

/** The arrows that led to a loop, and those that it led to: each begins after the one before it has arrived. */
export function chainOf(chart: Chart, id: string): ReadonlySet<string> {
  const start = chart.bars.get(id)?.parent ?? id;
  const [into, outOf] = [new Map<string, Arrow[]>(), new Map<string, Arrow[]>()];
  for (const arrow of chart.arrows.values()) {
    put(into, arrow.to, arrow);
    put(outOf, arrow.from, arrow);
  }
  const found = new Set<string>();
  const take = (arrow: Arrow) => !found.has(arrow.id) && found.add(arrow.id);
  const back = [...(into.get(start) ?? [])].filter(take);
  for (let arrow = back.pop(); arrow !== undefined; arrow = back.pop()) {
    const { from, fromAt } = arrow;
    back.push(...(into.get(from) ?? []).filter((each) => each.toAt <= fromAt).filter(take));
  }
  const on = [...(outOf.get(start) ?? [])].filter(take);
  for (let arrow = on.pop(); arrow !== undefined; arrow = on.pop()) {
    const { to, toAt } = arrow;
    on.push(...(outOf.get(to) ?? []).filter((each) => each.fromAt >= toAt).filter(take));
  }
  return found;
}

function put(map: Map<string, Arrow[]>, key: string, arrow: Arrow): void {
  const known = map.get(key);
  if (known) known.push(arrow);
  else map.set(key, [arrow]);
}
