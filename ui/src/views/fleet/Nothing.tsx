import { FirstAgent } from "../../parts/FirstAgent";
import { Empty } from "../../parts/Messages";
import { useIsPast } from "../../state/page";

/** Before there is an agent: what one is, and how it comes about. */
export function NoAgents() {
  const isPast = useIsPast();
  return (
    <Empty title={isPast ? "There were no agents at this time." : "No agents yet."}>
      <p>
        An agent has a model, a prompt and tools. It works on tasks one after the other, mails other agents, sleeps and
        wakes. Each is a row here, with what it does and what it costs.
      </p>
      <FirstAgent />
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
