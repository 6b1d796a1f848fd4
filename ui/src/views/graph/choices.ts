import { useCallback, useMemo } from "react";
import { useShownNow } from "../../parts/Times";
import { useQuery, useSelection } from "../../shell/addresses";
import { ALL_KINDS, type Filters, type ShownKind, type WhichAgents } from "./scene";

export type Recent = "all" | "hour" | "minutes";
const RECENT_SECONDS: Record<Recent, number> = { all: 0, hour: 3_600, minutes: 300 };
/** What is recent is looked at again so often. */
const STEP_SECONDS = 5;

/** What the user wants to see, as the address has it. */
export interface Choices {
  readonly filters: Filters;
  readonly recent: Recent;
  readonly setKinds: (kinds: ReadonlySet<ShownKind>) => void;
  readonly setRecent: (recent: string) => void;
  readonly setAgents: (agents: WhichAgents) => void;
  readonly setQuery: (query: string) => void;
}

export function useChoices(): Choices {
  const [kindsText, setKindsText] = useSelection("kinds", ALL_KINDS.join(","));
  const [recentText, setRecent] = useSelection("recent", "all");
  const [agentsText, setAgents] = useSelection("agents", "some");
  const [query, setQuery] = useSelection("q");
  const recent: Recent = recentText === "hour" || recentText === "minutes" ? recentText : "all";
  const agents: WhichAgents = agentsText === "linked" || agentsText === "all" ? agentsText : "some";
  const since = useSince(recent);
  const filters = useMemo<Filters>(() => {
    const named = new Set(kindsText.split(","));
    return { kinds: new Set(ALL_KINDS.filter((kind) => named.has(kind))), since, agents, query };
  }, [kindsText, since, agents, query]);
  const setKinds = useCallback(
    (kinds: ReadonlySet<ShownKind>) => setKindsText(ALL_KINDS.filter((kind) => kinds.has(kind)).join(",")),
    [setKindsText],
  );
  return { filters, recent, setKinds, setRecent, setAgents, setQuery };
}

function useSince(recent: Recent): number {
  const now = useShownNow();
  if (recent === "all") return 0;
  return Math.floor(now / STEP_SECONDS) * STEP_SECONDS - RECENT_SECONDS[recent];
}

/** The node or the pair of nodes that is looked at more closely. */
export interface Picked {
  readonly node: string | null;
  /** `from~to` */
  readonly edge: string | null;
}

export function usePicked(): [Picked, (picked: Partial<Picked>) => void] {
  const [search, change] = useQuery();
  const [node, edge] = [search.get("node"), search.get("edge")];
  const pick = useCallback(
    (picked: Partial<Picked>) => change({ node: picked.node ?? null, edge: picked.edge ?? null }),
    [change],
  );
  return [useMemo(() => ({ node, edge }), [node, edge]), pick];
}
