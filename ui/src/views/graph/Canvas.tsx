import "@xyflow/react/dist/base.css";
import {
  Background,
  Controls,
  type EdgeChange,
  type FitViewOptions,
  MiniMap,
  type MiniMapNodeProps,
  type NodeChange,
  ReactFlow,
  useReactFlow,
} from "@xyflow/react";
import { type KeyboardEvent, memo, useEffect, useMemo, useRef } from "react";
import { useWorld } from "../../state/page";
import { AgentNode, UserNode } from "./AgentNode";
import type { Picked } from "./choices";
import { type AnyEdge, flowEdges, flowNodes, type GraphNode, pairOfEdge } from "./flow";
import { LinkLine, WaitArrow } from "./Lines";
import type { Point, Positions } from "./layout";
import type { Scene } from "./scene";

const NODE_TYPES = { agent: AgentNode, user: UserNode };
const EDGE_TYPES = { link: LinkLine, wait: WaitArrow };
/** Beside the overview, which would cover what is below it; on a phone so large that it can be read. */
const FIT_WIDE = { padding: { top: "24px", right: "190px", bottom: "24px", left: "64px" }, maxZoom: 1.1 } as const;
const FIT_NARROW = { padding: 0.06, minZoom: 0.5, maxZoom: 1.1 } as const;
const MINI = { width: 150, height: 96 };
const WORDS = {
  "node.a11yDescription.default": "Press Enter to see what it does. Then the arrow keys move it.",
  "node.a11yDescription.keyboardDisabled": "Press Enter to see what it does.",
  "edge.a11yDescription.default": "Press Enter to see what went this way.",
};

interface CanvasProps {
  readonly scene: Scene;
  readonly positions: Positions;
  readonly picked: Picked;
  readonly onPick: (picked: Partial<Picked>) => void;
  readonly onMove: (moved: ReadonlyMap<string, Point>) => void;
  /** Changes when everything was laid out anew and is to be seen as a whole. */
  readonly turn: number;
  readonly isWide: boolean;
}

/** The graph itself. Its nodes and lines look at the world on their own. */
export const Canvas = memo(function Canvas({ scene, positions, picked, onPick, onMove, turn, isWide }: CanvasProps) {
  const fit: FitViewOptions = isWide ? FIT_WIDE : FIT_NARROW;
  const lastNodes = useRef<readonly GraphNode[]>([]);
  const lastEdges = useRef<readonly AnyEdge[]>([]);
  const nodes = useMemo(() => {
    lastNodes.current = flowNodes(scene, { positions, picked, last: lastNodes.current });
    return lastNodes.current as GraphNode[];
  }, [scene, positions, picked]);
  const edges = useMemo(() => {
    lastEdges.current = flowEdges(scene, { picked, last: lastEdges.current });
    return lastEdges.current as AnyEdge[];
  }, [scene, picked]);

  const onNodesChange = (changes: NodeChange<GraphNode>[]) => {
    const moved = new Map<string, Point>();
    for (const change of changes) {
      if (change.type === "select" && change.selected) onPick({ node: change.id });
      if (change.type === "position" && change.position) moved.set(change.id, change.position);
    }
    if (moved.size > 0) onMove(moved);
  };
  const onEdgesChange = (changes: EdgeChange<AnyEdge>[]) => {
    for (const change of changes) {
      if (change.type === "select" && change.selected) onPick({ edge: pairOfEdge(change.id) });
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onPick({});
  };
  return (
    <ReactFlow
      className="graph-flow"
      aria-label="Who has to do with whom"
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      edgeTypes={EDGE_TYPES}
      onNodesChange={onNodesChange}
      onEdgesChange={onEdgesChange}
      onPaneClick={() => onPick({})}
      onKeyDown={onKeyDown}
      data-picked={picked.node !== null || picked.edge !== null}
      onlyRenderVisibleElements
      nodesConnectable={false}
      selectNodesOnDrag={false}
      selectionKeyCode={null}
      multiSelectionKeyCode={null}
      deleteKeyCode={null}
      minZoom={0.04}
      maxZoom={2}
      fitView
      fitViewOptions={fit}
      ariaLabelConfig={WORDS}
    >
      <Background gap={24} />
      <Controls showInteractive={false} fitViewOptions={fit} />
      {isWide && <MiniMap style={MINI} nodeComponent={MiniNode} pannable zoomable ariaLabel="Overview" />}
      <Fitting turn={turn} fit={fit} />
    </ReactFlow>
  );
});

/** Show the whole after it was laid out anew. */
function Fitting({ turn, fit }: { turn: number; fit: FitViewOptions }) {
  const { fitView } = useReactFlow();
  const last = useRef(turn);
  useEffect(() => {
    if (last.current === turn) return;
    last.current = turn;
    const frame = requestAnimationFrame(() => void fitView(fit));
    return () => cancelAnimationFrame(frame);
  }, [turn, fit, fitView]);
  return null;
}

const MiniNode = memo(function MiniNode({ id, x, y, width, height }: MiniMapNodeProps) {
  const state = useWorld((world) => world.agents.get(id)?.state ?? "user");
  return <rect className="graph-mini" data-state={state} x={x} y={y} width={width} height={height} rx={12} />;
});
