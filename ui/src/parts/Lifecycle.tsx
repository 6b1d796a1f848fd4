import type { Agent } from "../projection/world";
import { openDialog } from "../shell/dialogState";
import { useIsLive, whyNotLive } from "../state/page";
import { steer } from "../steer/bulk";
import { ACTIONS, type Action, refusal, verbOf } from "../steer/lifecycle";
import { Icon } from "./Icon";

const SHOWN: readonly Action[] = ["start", "pause", "interrupt", "resume", "sleep", "wake", "stop", "delete"];

/** A button for everything that becomes of an agent. Those that its state does not allow are off and say why. */
export function Lifecycle({ agent }: { agent: Agent }) {
  const isLive = useIsLive();
  return (
    <fieldset className="lifecycle" aria-label="Lifecycle">
      {SHOWN.map((action) => {
        const { hint, icon } = ACTIONS[action];
        const why = isLive ? refusal(agent, action) : whyNotLive();
        return (
          <button
            key={action}
            type="button"
            className={action === "stop" || action === "delete" ? "danger" : ""}
            disabled={why !== null}
            title={why ?? hint}
            onClick={() => choose(action, agent.agentId)}
          >
            <Icon name={icon} size={14} />
            {verbOf(action)}
          </button>
        );
      })}
    </fieldset>
  );
}

/** Here there is room to ask why somebody is paused. */
function choose(action: Action, agentId: string): void {
  if (action === "pause" || action === "interrupt") openDialog({ kind: "steer", action, agentIds: [agentId] });
  else steer(action, [agentId]);
}
