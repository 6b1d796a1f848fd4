import { useEffect, useMemo, useState } from "react";
import type { Search } from "../../history/useSearch";
import { count } from "../../parts/format";
import { Problem } from "../../parts/Messages";
import { USER } from "../../projection/coordination";
import { useSelection } from "../../shell/addresses";
import { usePage, useWorld } from "../../state/page";

const NAMES: readonly [string, string][] = [
  ["agent.", "Agents"],
  ["async.task.", "Tasks"],
  ["step.", "Steps"],
  ["mail.", "Mails"],
  ["switch.", "Switches"],
  ["room.", "Rooms"],
  ["event.", "Events"],
  ["schedule.", "Schedules"],
  ["approval.", "Approvals"],
  ["question.", "Questions"],
  ["lock.", "Locks"],
  ["resource.", "Resources"],
  ["limit", "Limits"],
  ["mcp.", "MCP servers"],
];
const MOST_NAMES = 1_000;
const TYPING_MS = 250;

/** What of the log is shown, and how far it was searched for it. */
export function Filters({ search, isFiltered }: { search: Search; isFiltered: boolean }) {
  const size = useWorld((world) => world.agents.size);
  // biome-ignore lint/correctness/useExhaustiveDependencies: agents change all the time, who there is changes with this
  const options = useMemo(() => [...usePage.getState().live.agents.values()].slice(0, MOST_NAMES), [size]);
  const [agent, setAgent] = useSelection("agent");
  const [name, setName] = useSelection("name");
  const [text, setText] = useSelection("text");
  const typed = useTyped(text, setText);
  const typedName = useTyped(name, setName);
  const typedAgent = useTyped(agent, setAgent);
  return (
    <>
      <search className="log-filters">
        <label className="field">
          Agent
          <input list="log-agents" value={typedAgent.value} placeholder="all" onChange={typedAgent.onChange} />
        </label>
        <datalist id="log-agents">
          <option value={USER} />
          {options.map(({ agentId, name: called }) => (
            <option key={agentId} value={agentId}>
              {called}
            </option>
          ))}
        </datalist>
        <label className="field">
          Name
          <input
            list="log-names"
            value={typedName.value}
            placeholder="all, or its beginning"
            onChange={typedName.onChange}
          />
        </label>
        <datalist id="log-names">
          {NAMES.map(([prefix, title]) => (
            <option key={prefix} value={prefix}>
              {title}
            </option>
          ))}
        </datalist>
        <label className="field log-text">
          Text
          <input type="search" value={typed.value} placeholder="anything it says" onChange={typed.onChange} />
        </label>
      </search>
      {isFiltered && <Searched search={search} />}
    </>
  );
}

function Searched({ search }: { search: Search }) {
  const lastSeq = usePage((page) => page.live.seq);
  const { searchedTo, isBusy, problem, stop, goOn } = search;
  if (problem !== null) return <Problem error={problem} onRetry={goOn} />;
  return (
    <p className="log-searched" role="status">
      {searchedTo === 0
        ? "The whole log was searched."
        : `Searched ${count(Math.max(0, lastSeq - searchedTo))} of ${count(lastSeq)}, from the end.`}
      {isBusy && (
        <button type="button" onClick={stop}>
          Stop
        </button>
      )}
      {!isBusy && searchedTo > 0 && (
        <button type="button" onClick={goOn}>
          Search further back
        </button>
      )}
    </p>
  );
}

/** What is typed is shown at once, and used when the typing rests. */
function useTyped(value: string, choose: (value: string) => void) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => choose(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, value, choose]);
  return { value: typed, onChange: (event: { target: { value: string } }) => setTyped(event.target.value) };
}
