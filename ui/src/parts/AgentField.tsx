import { useId, useMemo } from "react";
import { agentsLike } from "../state/names";
import { useWorldSlowly } from "../state/slowly";

interface AgentFieldProps {
  label: string;
  value: string;
  onChange: (agentId: string) => void;
  required?: boolean;
}

const OFFERED = 200;

/** A field for the id of an agent, which offers those that there are. */
export function AgentField({ label, value, onChange, required = false }: AgentFieldProps) {
  const list = useId();
  const agents = useWorldSlowly((world) => world.agents);
  const fitting = useMemo(() => agentsLike(agents, value).slice(0, OFFERED), [agents, value]);
  return (
    <label className="field">
      {label}
      <input
        value={value}
        list={list}
        required={required}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={list}>
        {fitting.map(({ agentId, name }) => (
          <option key={agentId} value={agentId}>
            {name}
          </option>
        ))}
      </datalist>
    </label>
  );
}
