import { useMemo, useState } from "react";
import { agentsLike } from "../state/names";
import { useWorldSlowly } from "../state/slowly";
import "./agent-choice.css";

const SHOWN = 50;

interface AgentChoiceProps {
  label: string;
  chosen: ReadonlySet<string>;
  /** Those who cannot be chosen. */
  without?: readonly string[];
  isMany?: boolean;
  onChange: (chosen: ReadonlySet<string>) => void;
}

const NOBODY: readonly string[] = [];

/** Agents to choose from, found by a part of their name. */
export function AgentChoice({ label, chosen, without = NOBODY, isMany = false, onChange }: AgentChoiceProps) {
  const agents = useWorldSlowly((world) => world.agents);
  const [query, setQuery] = useState("");
  const found = useMemo(() => {
    const left = new Set(without);
    return agentsLike(agents, query).filter(({ agentId }) => !left.has(agentId));
  }, [agents, query, without]);
  const toggle = (agentId: string) => {
    const changed = new Set(isMany ? chosen : []);
    if (chosen.has(agentId)) changed.delete(agentId);
    else changed.add(agentId);
    onChange(changed);
  };
  return (
    <fieldset className="agent-choice">
      <legend>{label}</legend>
      <input
        type="search"
        placeholder="Find an agent"
        aria-label="Find an agent"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <ul>
        {found.slice(0, SHOWN).map(({ agentId, name, description }) => (
          <li key={agentId}>
            <label>
              <input
                type={isMany ? "checkbox" : "radio"}
                name="agent"
                checked={chosen.has(agentId)}
                onChange={() => toggle(agentId)}
              />
              <bdi>{name || agentId}</bdi>
              <span className="quiet ellipsis">{description}</span>
            </label>
          </li>
        ))}
      </ul>
      <p className="quiet" aria-live="polite">
        {found.length === 0 && (agents.size === 0 ? "There are no agents yet: create one in the fleet." : "No match.")}
        {isMany && chosen.size > 0 && `Chosen: ${[...chosen].join(", ")}. `}
        {found.length > SHOWN && `${found.length - SHOWN} more: write a part of the name.`}
      </p>
    </fieldset>
  );
}
