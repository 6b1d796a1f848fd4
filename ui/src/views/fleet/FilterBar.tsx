import { count, words } from "../../parts/format";
import { LOOKS, type Look } from "../../parts/looks";
import { COLUMNS, type Sort, sortFrom, sortText } from "./order";

/** Those that can be chosen while no agent is so. */
const USUAL: ReadonlySet<Look> = new Set(["active", "paused", "sleeping", "idle", "stopped"]);

interface FilterBarProps {
  query: string;
  onQuery: (query: string) => void;
  states: ReadonlySet<Look>;
  onStates: (states: string) => void;
  counts: Record<Look, number>;
  sort: Sort;
  onSort: (sort: string) => void;
}

/** Which agents are shown, and on a phone also in which order. */
export function FilterBar({ query, onQuery, states, onStates, counts, sort, onSort }: FilterBarProps) {
  const all = LOOKS.reduce((sum, state) => sum + counts[state], 0);
  function toggle(state: Look) {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    onStates(LOOKS.filter((each) => next.has(each)).join(","));
  }
  return (
    <div className="fleet-filter">
      <input
        type="search"
        data-filter
        aria-label="Filter agents"
        placeholder="Filter by name, id, description, state  ( / )"
        value={query}
        onChange={({ target }) => onQuery(target.value)}
      />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a line everywhere */}
      <div className="fleet-chips" role="group" aria-label="States">
        <button type="button" className="fleet-chip" aria-pressed={states.size === 0} onClick={() => onStates("")}>
          all <b>{count(all)}</b>
        </button>
        {LOOKS.filter((state) => USUAL.has(state) || counts[state] > 0 || states.has(state)).map((state) => (
          <button
            type="button"
            key={state}
            className="fleet-chip"
            data-state={state}
            aria-pressed={states.has(state)}
            onClick={() => toggle(state)}
          >
            {words(state)} <b>{count(counts[state])}</b>
          </button>
        ))}
      </div>
      <div className="fleet-sort">
        <select
          aria-label="Sort by"
          value={sort.column}
          onChange={({ target }) => onSort(sortText({ ...sort, column: sortFrom(target.value).column }))}
        >
          {COLUMNS.map(({ key, label }) => (
            <option key={key} value={key}>
              {label}
            </option>
          ))}
        </select>
        <button
          type="button"
          aria-label={
            sort.isDown ? "Largest first; change to smallest first" : "Smallest first; change to largest first"
          }
          onClick={() => onSort(sortText({ ...sort, isDown: !sort.isDown }))}
        >
          {sort.isDown ? "↓" : "↑"}
        </button>
      </div>
    </div>
  );
}
