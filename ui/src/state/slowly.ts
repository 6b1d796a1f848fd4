import { useEffect, useState } from "react";
import type { World } from "../projection/world";
import { shownWorld, usePage } from "./page";

/**
 * A part of the world that is shown, a few times a second at most: for what takes work with all agents at once. It is
 * current whenever nothing happened for `everyMs`.
 */
export function useWorldSlowly<Part>(part: (world: World) => Part, everyMs = 250): Part {
  const [value, setValue] = useState(() => part(shownWorld()));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selector is the same for as long as the view is there
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let world = shownWorld();
    const take = () => {
      timer = undefined;
      setValue(() => part(world));
    };
    take();
    const leave = usePage.subscribe((page) => {
      const next = shownWorld(page);
      if (next === world) return;
      world = next;
      timer ??= setTimeout(take, everyMs);
    });
    return () => {
      leave();
      clearTimeout(timer);
    };
  }, [everyMs]);
  return value;
}
