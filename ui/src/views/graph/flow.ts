import { type Node, Position } from "@xyflow/react";
import { waitedFor } from "../../parts/waited";
import { USER } from "../../projection/coordination";
import type { Picked } from "./choices";
import { KIND_WORDS } from "./kinds";
import type { LinkEdge, WaitEdge } from "./Lines";
import { NODE, type Positions } from "./layout";
import { pairOf, type Scene } from "./scene";

export type GraphNode = Node<Record<string, never>, "agent" | "user">;
export type AnyEdge = LinkEdge | WaitEdge;

/** Lines begin and end at the middle of nodes; where they are seen to, `curve` finds out. */
const MIDDLE = { position: Position.Top, x: NODE.width / 2, y: NODE.height / 2, width: 0, height: 0 };
const HANDLES = [
  { type: "source" as const, ...MIDDLE },
  { type: "target" as const, ...MIDDLE },
];
const DATA = {};

interface NodeState {
  readonly positions: Positions;
  readonly picked: Picked;
  /** The nodes of the last time: those that are the same are handed out again, and are not drawn anew. */
  readonly last: readonly GraphNode[];
}

export function flowNodes(scene: Pick<Scene, "nodes">, { positions, picked, last }: NodeState): readonly GraphNode[] {
  const known = new Map(last.map((node) => [node.id, node]));
  const nodes: GraphNode[] = [];
  for (const id of scene.nodes) {
    const position = positions.get(id);
    if (position === undefined) continue;
    const selected = picked.node === id;
    const before = known.get(id);
    const isSame = before !== undefined && before.position === position && before.selected === selected;
    nodes.push(isSame ? before : newNode(id, position, selected));
  }
  return sameItems(last, nodes) ? last : nodes;
}

function newNode(id: string, position: { x: number; y: number }, selected: boolean): GraphNode {
  return {
    id,
    type: id === USER ? "user" : "agent",
    position,
    data: DATA,
    selected,
    ...NODE,
    measured: NODE,
    handles: HANDLES,
    ariaRole: "button",
  };
}

interface EdgeState {
  readonly picked: Picked;
  readonly last: readonly AnyEdge[];
}

export function flowEdges(scene: Pick<Scene, "bundles" | "waits">, { picked, last }: EdgeState): readonly AnyEdge[] {
  const known = new Map(last.map((edge) => [edge.id, edge]));
  const edges: AnyEdge[] = [];
  const add = (edge: AnyEdge, isSame: (before: AnyEdge) => boolean) => {
    const before = known.get(edge.id);
    const isKept =
      before !== undefined &&
      before.selected === edge.selected &&
      before.className === edge.className &&
      isSame(before);
    edges.push(isKept ? before : edge);
  };
  for (const bundle of scene.bundles) {
    const { from, to, kinds } = bundle;
    const ariaLabel = `${from} to ${to}: ${kinds.map((kind) => KIND_WORDS[kind].many).join(", ")}`;
    const edge: LinkEdge = { ...common("link", bundle, picked), type: "link", ariaLabel, data: { bundle } };
    add(edge, ({ data }) => data !== undefined && "bundle" in data && data.bundle.kinds.join() === kinds.join());
  }
  for (const line of scene.waits) {
    const ariaLabel = `${line.from} waits for ${line.to}: ${line.waits.map(waitedFor).join(", ")}`;
    const edge: WaitEdge = { ...common("wait", line, picked), type: "wait", ariaLabel, data: { line } };
    add(edge, ({ data }) => data !== undefined && "line" in data && sameItems(data.line.waits, line.waits));
  }
  return sameItems(last, edges) ? last : edges;
}

function common(kind: string, { from, to }: { from: string; to: string }, picked: Picked) {
  const pair = pairOf({ from, to });
  const isNear = picked.node === from || picked.node === to || picked.edge === pair;
  return {
    id: `${kind} ${pair}`,
    source: from,
    target: to,
    selected: picked.edge === pair,
    className: isNear ? "graph-near" : "",
  };
}

function sameItems(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

/** `from~to` of an edge of the flow. */
export function pairOfEdge(edgeId: string): string {
  return edgeId.slice(edgeId.indexOf(" ") + 1);
}
