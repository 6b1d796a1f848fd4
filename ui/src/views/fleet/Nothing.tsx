import { Empty } from "../../parts/Messages";
import { openDialog } from "../../shell/dialogState";
import { useIsLive } from "../../state/page";

/** Before there is an agent: what one is, and how it comes about. */
export function NoAgents() {
  const isLive = useIsLive();
  return (
    <Empty title={isLive ? "No agents yet." : "There were no agents at this time."}>
      <p>
        An agent has a model, a prompt and tools. It works on tasks one after the other, mails other agents, sleeps and
        wakes. Each is a row here, with what it does and what it costs.
      </p>
      {isLive && (
        <p className="fleet-first">
          <button type="button" className="primary" onClick={() => openDialog({ kind: "new-agent" })}>
            Make the first agent
          </button>{" "}
          or run <code>whisperer start alice</code>. <code>whisperer demo</code> shows eleven at work.
        </p>
      )}
    </Empty>
  );
}

export function NoMatches({ onClear }: { onClear: () => void }) {
  return (
    <Empty title="No agent is like that.">
      <p>The filter looks at names, ids, descriptions and states.</p>
      <button type="button" onClick={onClear}>
        Show all agents
      </button>
    </Empty>
  );
}
