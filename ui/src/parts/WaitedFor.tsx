import { Link } from "wouter";
import { useAddress } from "../shell/addresses";
import { AgentLink } from "./AgentLink";
import { type Waited, waitedParts } from "./waited";

/** What is waited for, in words that follow "waits for", with a way to it. */
export function WaitedFor({ wait }: { wait: Waited }) {
  const address = useAddress();
  const { before, name, to, holders } = waitedParts(wait);
  return (
    <>
      {before}
      {wait.kind === "reply" && <AgentLink agentId={name} />}
      {wait.kind !== "reply" && (to === null ? name : <Link href={address(...to)}>{name}</Link>)}
      {holders.map((id, index) => (
        <span key={id}>
          {index === 0 ? ", with " : ", "}
          <AgentLink agentId={id} />
        </span>
      ))}
    </>
  );
}
