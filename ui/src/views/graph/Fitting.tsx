import { type FitViewOptions, getViewportForBounds, useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { useLayoutEffect, useRef } from "react";
import { extent, type Positions } from "./layout";

export interface Fit {
  readonly padding: NonNullable<FitViewOptions["padding"]>;
  readonly minZoom: number;
  readonly maxZoom: number;
}

interface FittingProps {
  readonly nodes: readonly string[];
  readonly positions: Positions;
  readonly turn: number;
  readonly fit: Fit;
}

/**
 * Shows the whole as soon as there is something, and after it was laid out anew. (What the flow itself offers for it waits until a node was
 * measured: where none is near the corner, nothing would ever be seen.)
 */
export function Fitting({ nodes, positions, turn, fit }: FittingProps) {
  const { setViewport } = useReactFlow();
  const store = useStoreApi();
  const isSized = useStore(({ width, height, panZoom }) => width > 0 && height > 0 && panZoom !== null);
  const last = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (!isSized || nodes.length === 0 || last.current === turn) return;
    last.current = turn;
    const { left: x, top: y, width, height } = extent(nodes.flatMap((id) => positions.get(id) ?? []));
    const { width: across, height: down } = store.getState();
    void setViewport(
      getViewportForBounds({ x, y, width, height }, across, down, fit.minZoom, fit.maxZoom, fit.padding),
    );
  }, [isSized, nodes, positions, turn, fit, store, setViewport]);
  return null;
}
