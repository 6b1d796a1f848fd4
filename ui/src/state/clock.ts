import { useSyncExternalStore } from "react";

let now = Date.now() / 1000;
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now = Date.now() / 1000;
  for (const watcher of watchers) watcher();
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= setInterval(tick, 1000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** While nobody watched, the clock stood still. */
function current(): number {
  if (timer === undefined && Date.now() / 1000 - now >= 1) now = Date.now() / 1000;
  return now;
}

/** Seconds since the epoch, told anew every second: one clock for all that counts. */
export function useNow(): number {
  return useSyncExternalStore(watch, current);
}
