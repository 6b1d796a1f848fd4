import type { Point, Positions } from "./layout";

/** Where the user left the nodes of a session is kept by the browser: it is about looks, and nobody else's business. */
function keyOf(sessionId: string): string {
  return `whisperer.graph.${sessionId}`;
}

export function readPositions(sessionId: string): Positions {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(sessionId)) ?? "{}");
    const entries = Object.entries(kept as Record<string, unknown>).flatMap(([id, place]) => {
      const [x, y] = Array.isArray(place) ? place : [];
      return Number.isFinite(x) && Number.isFinite(y) ? [[id, { x, y }] as [string, Point]] : [];
    });
    return new Map(entries);
  } catch {
    return new Map();
  }
}

export function keepPositions(sessionId: string, positions: Positions): void {
  const kept = Object.fromEntries([...positions].map(([id, { x, y }]) => [id, [Math.round(x), Math.round(y)]]));
  try {
    localStorage.setItem(keyOf(sessionId), JSON.stringify(kept));
  } catch {
    // The browser keeps nothing: next time the nodes are laid out anew.
  }
}
