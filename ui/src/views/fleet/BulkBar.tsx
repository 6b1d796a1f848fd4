import { count } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import type { Agent } from "../../projection/world";
import { useIsLive, whyNotLive } from "../../state/page";
import { cancelBulk, steer, useBulk } from "../../steer/bulk";
import { ACTION_NAMES, ACTIONS, type Action, fits } from "../../steer/lifecycle";

interface BulkBarProps {
  chosen: readonly string[];
  shown: readonly string[];
  agents: ReadonlyMap<string, Agent>;
  onClear: () => void;
}

/** What can be done to all agents that are ticked. */
export function BulkBar({ chosen, shown, agents, onClear }: BulkBarProps) {
  const under = useBulk((state) => state.under);
  const isLive = useIsLive();
  const visible = new Set(shown);
  const hidden = chosen.filter((id) => !visible.has(id)).length;
  function why(action: Action): string {
    if (!isLive) return whyNotLive();
    const fitting = chosen.filter((id) => fits(agents.get(id) as Agent, action)).length;
    if (fitting === 0) return `${ACTIONS[action].hint} None of these is in a state for it.`;
    return fitting === chosen.length
      ? ACTIONS[action].hint
      : `${ACTIONS[action].hint} It applies to ${fitting} of these.`;
  }
  const isPossible = (action: Action) => isLive && chosen.some((id) => fits(agents.get(id) as Agent, action));
  if (under !== null)
    return (
      <div className="fleet-line" role="status">
        <span className="ellipsis">{under.text}</span>
        <progress max={under.total} value={under.done} aria-label={under.text} />
        <span>
          {count(under.done)} of {count(under.total)}
        </span>
        <button type="button" onClick={cancelBulk}>
          Stop here
        </button>
      </div>
    );
  return (
    <section className="fleet-line fleet-bulk" aria-label="Agents that are ticked">
      <span className="fleet-chosen">
        <b>{count(chosen.length)}</b> chosen{hidden > 0 && `, ${count(hidden)} not shown`}
      </span>
      <button type="button" onClick={onClear}>
        Choose none
      </button>
      {ACTION_NAMES.map((action) => (
        <button
          type="button"
          key={action}
          title={why(action)}
          disabled={!isPossible(action)}
          onClick={() => steer(action, chosen)}
        >
          <Icon name={ACTIONS[action].icon} size={14} /> {ACTIONS[action].label}
        </button>
      ))}
    </section>
  );
}
