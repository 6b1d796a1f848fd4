import { Link } from "wouter";
import { useAddress } from "../shell/addresses";
import { useWorld } from "../state/page";

/** The name of an agent, as a way to its page. Whoever is none, such as the user, is just named. */
export function AgentLink({ agentId }: { agentId: string }) {
  const address = useAddress();
  const name = useWorld((world) => world.agents.get(agentId)?.name);
  if (name === undefined) return <bdi>{agentId}</bdi>;
  return (
    <Link href={address("agents", agentId)} title={agentId}>
      <bdi>{name}</bdi>
    </Link>
  );
}
