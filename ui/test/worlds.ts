import type { World } from "../src/projection/world";

/** The world for comparison: maps in one order, and cut off what sums of floating point numbers leave open. */
export function plain(world: World): unknown {
  return JSON.parse(
    JSON.stringify(world, (key, value) => {
      if (value instanceof Map) return Object.fromEntries([...value].sort(([one], [other]) => (one < other ? -1 : 1)));
      return key === "costUsd" && value !== null ? Number(value.toFixed(9)) : value;
    }),
  );
}
