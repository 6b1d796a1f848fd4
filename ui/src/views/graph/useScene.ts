import { useMemo, useSyncExternalStore } from "react";
import type { World } from "../../projection/world";
import { usePage } from "../../state/page";
import { type Filters, type Scene, sceneOf } from "./scene";

/** What is drawn is gathered anew so often at most; states, counts and lights do not wait for it. */
const PACE_MS = 250;

function watch(watcher: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const leave = usePage.subscribe(() => {
    timer ??= setTimeout(() => {
      timer = undefined;
      watcher();
    }, PACE_MS);
  });
  return () => {
    leave();
    clearTimeout(timer);
  };
}

function shownWorld(): World {
  const { playhead, live } = usePage.getState();
  return playhead?.world ?? live;
}

/** The world that is shown, but never more than four times a second another one. */
export function usePacedWorld(): World {
  return useSyncExternalStore(watch, shownWorld);
}

export function useScene(filters: Filters): Scene {
  const world = usePacedWorld();
  const { agents, links, waits, locks } = world;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the scene is made of these parts of the world only
  return useMemo(() => sceneOf(world, filters), [agents, links, waits, locks, filters]);
}
