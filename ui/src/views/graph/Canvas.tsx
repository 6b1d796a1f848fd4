import "@xyflow/react/dist/base.css";
import {
  Background,
  Controls,
  type EdgeChange,
  MiniMap,
  type MiniMapNodeProps,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
} from "@xyflow/react";
import { type KeyboardEvent, memo, useMemo, useRef } from "react";
import { lookOf } from "../../parts/looks";
import { useGrowing } from "../../state/growing";
import { useWorld } from "../../state/page";
import { AgentNode, UserNode, useIsFar } from "./AgentNode";
import type { Picked } from "./choices";
import { type Fit, Fitting } from "./Fitting";
import { type AnyEdge, flowEdges, flowNodes, type GraphNode, pairOfEdge } from "./flow";
import { LinkLine, WaitArrow } from "./Lines";
import type { Point, Positions } from "./layout";
import { ManyLines } from "./ManyLines";
import { pairOf, type Scene } from "./scene";

const NODE_TYPES = { agent: AgentNode, user: UserNode };
const EDGE_TYPES = { link: LinkLine, wait: WaitArrow };
/** From far away so many lines at most are lines of their own. */
const FEW_LINES = 150;
const NODES_A_FRAME = 120;
const LINES_A_FRAME = 150;
const FARTHEST = 0.04;
/** Beside the overview, which would cover what is below it; on a phone so large that it can be read. */
const FIT_WIDE: Fit = {
  padding: { top: "24px", right: "190px", bottom: "24px", left: "64px" },
  minZoom: FARTHEST,
  maxZoom: 1.1,
};
const FIT_NARROW: Fit = { padding: 0.06, minZoom: 0.5, maxZoom: 1.1 };
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
export const Canvas = memo(function Canvas(props: CanvasProps) {
  return (
    <ReactFlowProvider>
      <Flow {...props} />
    </ReactFlowProvider>
  );
});

function Flow({ scene, positions, picked, onPick, onMove, turn, isWide }: CanvasProps) {
  const fit = isWide ? FIT_WIDE : FIT_NARROW;
  const isFar = useIsFar();
  const wanted = useMemo(() => linesApart(scene.bundles, isFar, picked), [scene.bundles, isFar, picked]);
  const apart = useGrowing(wanted, LINES_A_FRAME);
  const together = useMemo(() => without(scene.bundles, apart), [scene.bundles, apart]);
  const lastNodes = useRef<readonly GraphNode[]>([]);
  const lastEdges = useRef<readonly AnyEdge[]>([]);
  const ids = useGrowing(scene.nodes, NODES_A_FRAME);
  const nodes = useMemo(() => {
    lastNodes.current = flowNodes({ nodes: ids }, { positions, picked, last: lastNodes.current });
    return lastNodes.current as GraphNode[];
  }, [ids, positions, picked]);
  const edges = useMemo(() => {
    lastEdges.current = flowEdges({ bundles: apart, waits: scene.waits }, { picked, last: lastEdges.current });
    return lastEdges.current as AnyEdge[];
  }, [apart, scene.waits, picked]);

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
      minZoom={FARTHEST}
      maxZoom={2}
      ariaLabelConfig={WORDS}
    >
      <Background gap={24} />
      <Controls showInteractive={false} fitViewOptions={fit} />
      {isWide && <MiniMap style={MINI} nodeComponent={MiniNode} pannable zoomable ariaLabel="Overview" />}
      {together.length > 0 && <ManyLines bundles={together} positions={positions} />}
      <Fitting turn={turn} fit={fit} nodes={scene.nodes} positions={positions} />
    </ReactFlow>
  );
}

/** The lines that can be picked: from far away, where there are many, only those of what is picked. */
function linesApart(bundles: Scene["bundles"], isFar: boolean, picked: Picked): Scene["bundles"] {
  if (!isFar || bundles.length <= FEW_LINES) return bundles;
  return bundles.filter(
    (bundle) => picked.node === bundle.from || picked.node === bundle.to || picked.edge === pairOf(bundle),
  );
}

/** The others, which are drawn together. */
function without(bundles: Scene["bundles"], apart: Scene["bundles"]): Scene["bundles"] {
  if (apart.length === bundles.length) return NONE;
  const known = new Set(apart);
  return bundles.filter((bundle) => !known.has(bundle));
}

const NONE: Scene["bundles"] = [];

const MiniNode = memo(function MiniNode({ id, x, y, width, height }: MiniMapNodeProps) {
  const look = useWorld((world) => {
    const agent = world.agents.get(id);
    return agent === undefined ? "user" : lookOf(agent);
  });
  return <rect className="graph-mini" data-state={look} x={x} y={y} width={width} height={height} rx={12} />;
});
