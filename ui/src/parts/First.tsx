import { type ReactNode, useState } from "react";
import { count } from "./format";

interface Bounds {
  /** How many are shown at first, and how many more at each click. */
  readonly step?: number;
  /** The place of one that has to be among them; -1 for none. */
  readonly including?: number;
}

/** The first of a long list, and a button for more: thousands of rows of different heights at once stop the page. */
export function useFirst<Item>(
  items: readonly Item[],
  { step = 50, including = -1 }: Bounds = {},
): { first: readonly Item[]; more: ReactNode } {
  const [wanted, setWanted] = useState(step);
  const shown = Math.max(wanted, including + 1);
  const left = items.length - shown;
  if (left <= 0) return { first: items, more: null };
  return {
    first: items.slice(0, shown),
    more: (
      <button type="button" className="show-more" onClick={() => setWanted(shown + step)}>
        Show {count(Math.min(step, left))} more of {count(left)}
      </button>
    ),
  };
}
