import { useSyncExternalStore } from "react";

/** The width below which the page is laid out for a phone, as in the style sheets. */
const NARROW = "(max-width: 760px)";

function watch(told: () => void): () => void {
  const query = matchMedia(NARROW);
  query.addEventListener("change", told);
  return () => query.removeEventListener("change", told);
}

/** Whether the page is laid out for a phone. */
export function useIsNarrow(): boolean {
  return useSyncExternalStore(watch, () => matchMedia(NARROW).matches);
}
