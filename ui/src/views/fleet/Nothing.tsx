import { useActing } from "../../parts/acting";
import { Empty } from "../../parts/Messages";
import { openDialog } from "../../shell/dialogState";
import { useIsPast } from "../../state/page";

/** Before there is an agent: what one is, and how it comes about. */
export function NoAgents() {
  const isPast = useIsPast();
  const acting = useActing();
  return (
    <Empty title={isPast ? "There were no agents at this time." : "No agents yet."}>
      <p>
        An agent has a model, a prompt and tools. It works on tasks one after the other, mails other agents, sleeps and
        wakes. Each is a row here, with what it does and what it costs.
      </p>
      {!isPast && (
        <p className="fleet-first">
          <button type="button" className="primary" {...acting} onClick={() => openDialog({ kind: "new-agent" })}>
            Create the first agent
          </button>{" "}
          or run <code>whisperer start alice</code>. <code>whisperer demo</code> shows eleven at work.
        </p>
      )}
    </Empty>
  );
}

export function NoMatches({ onClear }: { onClear: () => void }) {
  return (
    <Empty title="No agent matches.">
      <p>The filter looks at names, ids, descriptions and states.</p>
      <button type="button" onClick={onClear}>
        Show all agents
      </button>
    </Empty>
  );
}
