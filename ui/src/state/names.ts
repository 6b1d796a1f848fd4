import type { Agent } from "../projection/world";
import { useWorld } from "./page";

/** What an agent is called; its id, if nothing else is known of it. */
export function nameIn(agents: ReadonlyMap<string, Pick<Agent, "name">>, agentId: string): string {
  return agents.get(agentId)?.name || agentId;
}

export function useName(agentId: string): string {
  return useWorld((world) => nameIn(world.agents, agentId));
}
