import { useCallback, useEffect, useMemo, useState } from "react";
import { arranged, extended, type Point, type Positions, resumed } from "./layout";
import { keepPositions, readPositions } from "./positions";
import type { Scene } from "./scene";

const KEEP_AFTER_MS = 400;

export interface Places {
  readonly positions: Positions;
  readonly move: (moved: ReadonlyMap<string, Point>) => void;
  /** Lay everything out anew, and count the turn. */
  readonly again: () => void;
  readonly turn: number;
}

/** Where the nodes of a session are: what was placed once stays there until the user moves it. */
export function usePlaces(sessionId: string, scene: Scene): Places {
  const lines = useMemo(() => [...scene.bundles, ...scene.waits], [scene]);
  const [placed, setPlaced] = useState<Positions>(() => resumed(readPositions(sessionId), scene.nodes, lines));
  const [turn, setTurn] = useState(0);
  const positions = useMemo(() => extended(placed, scene.nodes, lines), [placed, scene.nodes, lines]);

  useEffect(() => {
    setPlaced(positions);
    const timer = setTimeout(() => keepPositions(sessionId, positions), KEEP_AFTER_MS);
    return () => clearTimeout(timer);
  }, [sessionId, positions]);

  const move = useCallback(
    (moved: ReadonlyMap<string, Point>) => setPlaced((before) => new Map([...before, ...moved])),
    [],
  );
  const again = useCallback(() => {
    setPlaced(arranged(scene.nodes, lines));
    setTurn((count) => count + 1);
  }, [scene.nodes, lines]);
  return { positions, move, again, turn };
}
