import { clockTime } from "../../parts/format";
import { useShownNow } from "../../parts/Times";

const UNITS: readonly [seconds: number, name: string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** How long ago, in the largest unit alone. */
export function lately(seconds: number): string {
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, "s"];
  return seconds < 2 ? "now" : `${Math.floor(seconds / size)} ${name}`;
}

/** How long ago something was, where there is little room. */
export function Lately({ at }: { at: number }) {
  const now = useShownNow();
  return <time title={clockTime(at)}>{lately(now - at)}</time>;
}
