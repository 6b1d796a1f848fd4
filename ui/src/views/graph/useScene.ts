import { useMemo } from "react";
import { useWorldSlowly } from "../../state/slowly";
import { type Filters, type Scene, sceneOf } from "./scene";

/** What is drawn, gathered a few times a second at most; states, counts and lights do not wait for it. */
export function useScene(filters: Filters): Scene {
  const world = useWorldSlowly((each) => each);
  const { agents, links, waits, locks } = world;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the scene is made of these parts of the world only
  return useMemo(() => sceneOf(world, filters), [agents, links, waits, locks, filters]);
}
