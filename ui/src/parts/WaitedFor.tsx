import { Link } from "wouter";
import type { Wait } from "../projection/world";
import { useAddress } from "../shell/addresses";
import { AgentLink } from "./AgentLink";

/** What is waited for, in words that follow "waits for", with a way to it. */
export function WaitedFor({ wait: { kind, target, holders } }: { wait: Wait }) {
  const to = useAddress();
  switch (kind) {
    case "approval":
      return <Link href={to("approvals", target)}>your approval</Link>;
    case "reply":
      return (
        <>
          an answer of <AgentLink agentId={target} />
        </>
      );
    case "lock":
      return (
        <>
          the lock <Link href={to("locks", target)}>{target}</Link>
          <Holders ids={holders} />
        </>
      );
    case "resource":
      return (
        <>
          its turn at {target}
          <Holders ids={holders} />
        </>
      );
  }
}

function Holders({ ids }: { ids: readonly string[] }) {
  return ids.map((id, index) => (
    <span key={id}>
      {index === 0 ? ", with " : ", "}
      <AgentLink agentId={id} />
    </span>
  ));
}
