import type { Agent } from "../projection/world";
import { useWorld } from "./page";

/** What an agent is called; its id, if nothing else is known of it. */
export function nameIn(agents: ReadonlyMap<string, Pick<Agent, "name">>, agentId: string): string {
  return agents.get(agentId)?.name || agentId;
}

export function useName(agentId: string): string {
  return useWorld((world) => nameIn(world.agents, agentId));
}

/** Those with these letters somewhere in their id or name. */
export function agentsLike(agents: ReadonlyMap<string, Agent>, letters: string): Agent[] {
  const wanted = letters.trim().toLowerCase();
  return [...agents.values()].filter(
    ({ agentId, name }) => agentId.toLowerCase().includes(wanted) || name.toLowerCase().includes(wanted),
  );
}
