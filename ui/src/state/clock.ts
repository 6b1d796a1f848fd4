import { useSyncExternalStore } from "react";

let now = Date.now() / 1000;
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= setInterval(() => {
    now = Date.now() / 1000;
    for (const each of watchers) each();
  }, 1000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Seconds since the epoch, told anew every second: one clock for all that counts. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}
