import type { Draft } from "./draft";
import { type LinkKind, linkKey } from "./world";

/** One has reached another once more. */
export function link(draft: Draft, from: string, to: string, kind: LinkKind, at: number): void {
  const key = linkKey({ from, to, kind });
  draft.set("links", key, { from, to, kind, count: (draft.get("links", key)?.count ?? 0) + 1, lastAt: at });
}
