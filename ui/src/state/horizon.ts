import { usePage } from "./page";

/** The time up to which things are shown: that of the playhead, or no end while the page is live. */
export function useHorizon(): number {
  return usePage((page) => page.playhead?.world.at ?? Number.POSITIVE_INFINITY);
}
