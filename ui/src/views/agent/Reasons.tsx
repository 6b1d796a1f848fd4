import { useMemo } from "react";
import { Link } from "wouter";
import { type Hindrance, hindrances } from "../../parts/hindrances";
import { failedTasks } from "../../parts/looks";
import { Since, Until } from "../../parts/Times";
import { WaitedFor } from "../../parts/WaitedFor";
import type { Agent } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { useWorld } from "../../state/page";
import { useLimitsAddress } from "./links";

/** Everything that keeps the agent from working, and what was said about its state. */
export function Reasons({ agent }: { agent: Agent }) {
  const waits = useWorld((world) => world.waits);
  const found = useMemo(() => {
    const own = [...waits.values()].filter(({ agentId }) => agentId === agent.agentId);
    return hindrances(agent, own).filter(({ kind }) => kind !== "halted"); // its state says that
  }, [agent, waits]);
  if (found.length === 0 && agent.reason === "") return null;
  return (
    <ul className="agent-whys" aria-label="Reasons">
      {agent.reason !== "" && <li>{agent.reason}</li>}
      {found.map((hindrance) => (
        <li key={JSON.stringify(hindrance)}>
          <Reason hindrance={hindrance} agentId={agent.agentId} />
        </li>
      ))}
    </ul>
  );
}

function Reason({ hindrance, agentId }: { hindrance: Hindrance; agentId: string }) {
  const to = useAddress();
  const limitsOf = useLimitsAddress();
  switch (hindrance.kind) {
    case "not_started":
      return <span>It has not been started yet: what it is given waits.</span>;
    case "sleep":
      return <Sleep sleep={hindrance} />;
    case "limit":
      return (
        <span>
          Paused at its limit <code>{hindrance.limit}</code>: it resumes when that is raised.{" "}
          <Link href={limitsOf(agentId)}>Raise it</Link>
        </span>
      );
    case "failed":
      return (
        <span>
          {failedTasks(hindrance.count)}: retry or dismiss {hindrance.count === 1 ? "it" : "them"} among the{" "}
          <Link href={`${to("dead")}?agent=${encodeURIComponent(agentId)}`}>dead letters</Link>.
        </span>
      );
    case "retry":
      return (
        <span>
          Waits for its model, and asks again <Until at={hindrance.at} />
          {hindrance.reason !== "" && `: ${hindrance.reason}`}
        </span>
      );
    case "tools":
      return (
        <span>
          Waits for tools that were not provided: {hindrance.tools.join(", ")}. Start the program that has them, or{" "}
          <Link href={to("tools")}>see which tools there are</Link>.
        </span>
      );
    case "wait":
      return <Waits hindrance={hindrance} />;
    case "halted":
      return null;
  }
}

function Sleep({ sleep: { isAsleep, until, events } }: { sleep: Extract<Hindrance, { kind: "sleep" }> }) {
  return (
    <span>
      {isAsleep ? "Wakes" : "Is to sleep after that; wakes"} {until !== null && <Until at={until} />}
      {until !== null && events.length > 0 && ", or"}
      {events.length > 0 && <> at {events.length === 1 ? "the event" : "one of the events"} </>}
      {events.map((event) => (
        <code key={event} className="tag">
          {event}
        </code>
      ))}
      {until === null && events.length === 0 && "when somebody wakes it"}
    </span>
  );
}

function Waits({ hindrance: { wait } }: { hindrance: Extract<Hindrance, { kind: "wait" }> }) {
  return (
    <span>
      Waits for <WaitedFor wait={wait} />
      {wait.since !== null && (
        <>
          , for <Since at={wait.since} />
        </>
      )}
      {wait.deadlineAt !== null && (
        <>
          , gives up <Until at={wait.deadlineAt} />
        </>
      )}
    </span>
  );
}
