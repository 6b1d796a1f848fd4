import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";

/** Longer than a double click, and than it takes to see that something else is under the pointer. */
export const SETTLE_MS = 800;

/**
 * Rows of a list that just moved or appeared take no click for a moment: the pointer was meant for what stood there.
 * The keyboard is not held up, since the focus stays with its row. `list` has the rows as its children.
 */
export function useSettling(list: RefObject<HTMLElement | null>): void {
  const places = useRef(new WeakMap<Element, number>());
  const timers = useRef(new Map<HTMLElement, ReturnType<typeof setTimeout>>());
  const look = useRef(() => {
    for (const row of list.current?.children ?? []) {
      const place = (row as HTMLElement).offsetTop;
      if (places.current.get(row) === place) continue;
      places.current.set(row, place);
      hold(row as HTMLElement, timers.current);
    }
  });
  useLayoutEffect(() => look.current());
  useEffect(() => {
    const watcher = new ResizeObserver(() => look.current()); // something before them became larger or smaller
    for (const each of list.current?.parentElement?.children ?? []) watcher.observe(each);
    for (const row of list.current?.children ?? []) watcher.observe(row);
    return () => watcher.disconnect();
  });
  useEffect(() => {
    const held = timers.current;
    return () => {
      for (const timer of held.values()) clearTimeout(timer);
    };
  }, []);
}

function hold(row: HTMLElement, timers: Map<HTMLElement, ReturnType<typeof setTimeout>>): void {
  clearTimeout(timers.get(row));
  row.dataset.settling = "";
  const release = () => {
    timers.delete(row);
    delete row.dataset.settling;
  };
  timers.set(row, setTimeout(release, SETTLE_MS));
}
