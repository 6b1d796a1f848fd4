import { useMemo } from "react";
import { count, money } from "../../parts/format";
import type { Agent } from "../../projection/world";
import { totals } from "./order";

/** What all agents that are shown do and have used together. */
export function TotalsLine({ agents, shown }: { agents: ReadonlyMap<string, Agent>; shown: readonly string[] }) {
  const sum = useMemo(() => totals(shown.flatMap((id) => agents.get(id) ?? [])), [agents, shown]);
  const isAll = shown.length === agents.size;
  const noun = agents.size === 1 ? "agent" : "agents";
  return (
    <p className="fleet-line fleet-totals">
      <span>
        <b>{count(shown.length)}</b> {isAll ? noun : `of ${count(agents.size)} ${noun}`}
      </span>
      <span>
        <b>{count(sum.running)}</b> running
      </span>
      <span>
        <b>{count(sum.queued)}</b> queued
      </span>
      <span>
        <b>{count(sum.tokens)}</b> tokens
      </span>
      <span>
        <b>{money(sum.costUsd)}</b> cost
      </span>
    </p>
  );
}
