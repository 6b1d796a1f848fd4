/** The agents that are ticked, and the one that was ticked last: ranges begin there. */
export interface Ticks {
  readonly ids: ReadonlySet<string>;
  readonly last: string | null;
}

export const NO_TICKS: Ticks = { ids: new Set(), last: null };

/** Tick one or take its tick away. With `isRange` all between the last one and this become like this. */
export function ticked(ticks: Ticks, id: string, order: readonly string[], isRange: boolean): Ticks {
  const ids = new Set(ticks.ids);
  const isOn = !ids.has(id);
  const from = isRange && ticks.last !== null ? order.indexOf(ticks.last) : -1;
  const to = order.indexOf(id);
  const range = from < 0 || to < 0 ? [id] : order.slice(Math.min(from, to), Math.max(from, to) + 1);
  for (const each of range) {
    if (isOn) ids.add(each);
    else ids.delete(each);
  }
  return { ids, last: id };
}

/** Tick all that are shown; or, if they are all ticked, none. */
export function allTicked(ticks: Ticks, order: readonly string[]): Ticks {
  const ids = new Set(ticks.ids);
  const areOn = order.every((id) => ids.has(id));
  for (const id of order) {
    if (areOn) ids.delete(id);
    else ids.add(id);
  }
  return { ids, last: null };
}

/** Those ticked that are still there, in the order in which they are shown; those that the filter hides come last. */
export function tickedIds(ticks: Ticks, order: readonly string[], all: ReadonlyMap<string, unknown>): string[] {
  if (ticks.ids.size === 0) return [];
  const shown = order.filter((id) => ticks.ids.has(id));
  const known = new Set(shown);
  const hidden = [...ticks.ids].filter((id) => !known.has(id) && all.has(id));
  return [...shown, ...hidden];
}
