import { useEffect } from "react";
import { create } from "zustand";
import { listen, usePage } from "../../state/page";
import { usedLinks } from "./scene";

/** How long a line is lit, and how many are at most: more would neither be seen nor be drawn smoothly. */
export const LIT_MS = 1_200;
export const MOST_LIT = 24;

/** Until when each lit link, by its key, is lit. */
export const useLights = create<{ lit: ReadonlyMap<string, number> }>()(() => ({ lit: new Map() }));

/** What is lit after these links were used. One that is lit already stays so for no longer. */
export function relit(
  lit: ReadonlyMap<string, number>,
  used: readonly string[],
  now: number,
): ReadonlyMap<string, number> {
  const after = new Map([...lit].filter(([, until]) => until > now));
  for (const key of used) {
    if (after.size >= MOST_LIT) break;
    if (!after.has(key)) after.set(key, now + LIT_MS);
  }
  return after.size === 0 && lit.size === 0 ? lit : after;
}

/** Light up what happens while the graph is shown; in the past nothing happens. */
export function useLighting(): void {
  useEffect(() => {
    let links = usePage.getState().live.links;
    const light = (used: readonly string[]) =>
      useLights.setState(({ lit }) =>
        used.length === 0 && lit.size === 0 ? {} : { lit: relit(lit, used, Date.now()) },
      );
    const leave = listen(() => {
      const { live, playhead } = usePage.getState();
      const used = usedLinks(links, live.links);
      links = live.links;
      if (playhead === null && used.length > 0) light(used);
    });
    const timer = setInterval(() => light([]), LIT_MS / 4);
    return () => {
      leave();
      clearInterval(timer);
      useLights.setState({ lit: new Map() });
    };
  }, []);
}
