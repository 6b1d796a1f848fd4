import { useEffect, useMemo, useState } from "react";

/** The first of many items, more of them with each frame until all are there: so no frame has too much to draw. */
export function useGrowing<Item>(items: readonly Item[], step: number): readonly Item[] {
  const [most, setMost] = useState(step);
  if (items.length <= step && most !== step) setMost(step); // so that it grows again when there are many again
  const isWhole = items.length <= most;
  useEffect(() => {
    if (isWhole) return;
    const frame = requestAnimationFrame(() => setMost(most + step));
    return () => cancelAnimationFrame(frame);
  }, [isWhole, most, step]);
  return useMemo(() => (isWhole ? items : items.slice(0, most)), [items, isWhole, most]);
}
