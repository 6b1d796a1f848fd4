import { useEffect } from "react";
import { listen } from "./page";

/** Ask again every so often while something happens in the session: for answers that are large or not urgent. */
export function useRefreshing(again: () => void, everyMs: number): void {
  useEffect(() => {
    let isStale = false;
    const leave = listen((notes) => {
      isStale ||= notes.some(({ seq }) => seq > 0);
    });
    const timer = setInterval(() => {
      if (!isStale) return;
      isStale = false;
      again();
    }, everyMs);
    return () => {
      leave();
      clearInterval(timer);
    };
  }, [again, everyMs]);
}
