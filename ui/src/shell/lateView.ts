import { type ComponentType, createElement, lazy, useState } from "react";

type Load = () => Promise<{ default: ComponentType }>;

const late: Load[] = [];

/**
 * A view whose code is loaded when it is first shown, or before that by `loadViews`. One that is there already is
 * drawn at once: `lazy` alone would show its fallback even then, and React keeps that for 300 ms.
 */
export function lateView(load: Load): ComponentType {
  let view: ComponentType | null = null;
  const loadOnce: Load = async () => {
    const loaded = await load();
    view = loaded.default;
    return loaded;
  };
  late.push(loadOnce);
  const Later = lazy(loadOnce);
  return function View() {
    const [chosen] = useState(() => ({ shown: view ?? Later })); // for good: another would begin anew
    return createElement(chosen.shown);
  };
}

/** Load the code of all views, one after the other. What cannot be loaded is tried again when it is shown. */
export async function loadViews(): Promise<void> {
  for (const load of late.splice(0)) await load().catch(() => {});
}
