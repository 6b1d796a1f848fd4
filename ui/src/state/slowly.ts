import { useEffect, useState } from "react";
import type { World } from "../projection/world";
import { type Page, usePage } from "./page";

function shown(page: Page): World {
  return page.playhead?.world ?? page.live;
}

/**
 * A part of the world that is shown, a few times a second at most: for what takes work with all agents at once. It is
 * current whenever nothing happened for `everyMs`.
 */
export function useWorldSlowly<Part>(part: (world: World) => Part, everyMs = 250): Part {
  const [value, setValue] = useState(() => part(shown(usePage.getState())));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the selector is the same for as long as the view is there
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let world = shown(usePage.getState());
    const take = () => {
      timer = undefined;
      setValue(() => part(world));
    };
    take();
    const leave = usePage.subscribe((page) => {
      const next = shown(page);
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
