import { useSyncExternalStore } from "react";

const WIDE = "(min-width: 900px)";

function watch(watcher: () => void): () => void {
  const query = matchMedia(WIDE);
  query.addEventListener("change", watcher);
  return () => query.removeEventListener("change", watcher);
}

/** Whether there is room for more than the graph itself. */
export function useIsWide(): boolean {
  return useSyncExternalStore(watch, () => matchMedia(WIDE).matches);
}
