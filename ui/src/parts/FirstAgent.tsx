import { openDialog } from "../shell/dialogState";
import { useIsPast, useWorld } from "../state/page";
import { useActing } from "./acting";

/** What to do next in a session without an agent, of whatever there is nothing yet. */
export function FirstAgent() {
  const hasAgents = useWorld((world) => world.agents.size > 0);
  const isPast = useIsPast();
  const acting = useActing();
  if (hasAgents || isPast) return null;
  return (
    <p className="empty-next">
      <button type="button" className="primary" {...acting} onClick={() => openDialog({ kind: "new-agent" })}>
        Create the first agent
      </button>{" "}
      or run <code>whisperer start alice</code>. <code>whisperer demo</code> shows eleven at work.
    </p>
  );
}
