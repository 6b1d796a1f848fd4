import { Icon } from "../../parts/Icon";
import type { Choices } from "./choices";
import { KIND_ICONS, KIND_WORDS } from "./kinds";
import { ALL_KINDS, type ShownKind, type WhichAgents } from "./scene";

/** What is drawn, and what the colours mean: the kinds are their own legend. */
export function Filtering({ choices }: { choices: Choices }) {
  const { filters, recent } = choices;
  const toggle = (kind: ShownKind) => {
    const kinds = new Set(filters.kinds);
    if (!kinds.delete(kind)) kinds.add(kind);
    choices.setKinds(kinds);
  };
  return (
    <div className="graph-filters">
      <fieldset className="graph-kinds">
        <legend className="visually-hidden">Which lines are drawn</legend>
        {ALL_KINDS.map((kind) => (
          <label key={kind} className="graph-kind" data-kind={kind}>
            <input type="checkbox" checked={filters.kinds.has(kind)} onChange={() => toggle(kind)} />
            <Icon name={KIND_ICONS[kind]} size={14} />
            {KIND_WORDS[kind].many}
          </label>
        ))}
      </fieldset>
      <select aria-label="When" value={recent} onChange={(event) => choices.setRecent(event.target.value)}>
        <option value="all">At any time</option>
        <option value="hour">In the last hour</option>
        <option value="minutes">In the last 5 minutes</option>
      </select>
      <select
        aria-label="Which agents"
        value={filters.agents}
        onChange={(event) => choices.setAgents(event.target.value as WhichAgents)}
      >
        <option value="some">Some without links</option>
        <option value="linked">Only with links</option>
        <option value="all">All agents</option>
      </select>
      <input
        type="search"
        aria-label="Find agents"
        placeholder="Find agents"
        value={filters.query}
        onChange={(event) => choices.setQuery(event.target.value)}
      />
    </div>
  );
}
