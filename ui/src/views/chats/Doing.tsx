import { Link } from "wouter";
import { Until } from "../../parts/Times";
import { WaitedFor } from "../../parts/WaitedFor";
import { useAddress } from "../../shell/addresses";
import type { Doing as DoingOf } from "./doing";

/** In a few words what an answering agent is at, with a way to what it waits for. */
export function Doing({ agentId, doing }: { agentId: string; doing: DoingOf }) {
  const to = useAddress();
  switch (doing.kind) {
    case "works":
      return <>{doing.words}</>;
    case "waits":
      return (
        <>
          {doing.isOther ? "is at another task, which waits for " : "waits for "}
          <WaitedFor wait={doing.wait} />
        </>
      );
    case "retries":
      return (
        <span title={doing.reason}>
          waits for its model, asks again <Until at={doing.at} />: {doing.reason}
        </span>
      );
    case "rests":
      return (
        <>
          {doing.words}. <Link href={to("agents", agentId)}>See its page</Link>
        </>
      );
  }
}
