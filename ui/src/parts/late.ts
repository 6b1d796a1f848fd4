import { type ComponentType, createElement, lazy, useState } from "react";

const waiting: (() => Promise<unknown>)[] = [];

/**
 * A component whose code is loaded when it is first shown, or before that by `loadLate`. One that is there already is
 * drawn at once: `lazy` alone would show its fallback even then, and React keeps that for 300 ms.
 */
export function late<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  let there: ComponentType<Props> | null = null;
  const loadIt = async () => {
    const loaded = await load();
    there = loaded.default;
    return loaded;
  };
  waiting.push(loadIt);
  const Later = lazy(loadIt) as unknown as ComponentType<Props>;
  return function Late(props: Props) {
    const [chosen] = useState(() => ({ component: there ?? Later })); // for good: another would begin anew
    return createElement(chosen.component, props);
  };
}

/** Load all such code, one after the other. What cannot be loaded is tried again when it is shown. */
export async function loadLate(): Promise<void> {
  for (const load of waiting.splice(0)) await load().catch(() => {});
}
