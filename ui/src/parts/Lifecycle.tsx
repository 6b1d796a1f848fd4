import { type FormEvent, useState } from "react";
import type { Agent } from "../projection/world";
import { act } from "../state/actions";
import { useIsLive } from "../state/page";
import { Confirm, Dialog } from "./Dialog";
import { Icon, type IconName } from "./Icon";
import { LIFECYCLE, LIFECYCLE_ACTIONS, type LifecycleAction, refusal } from "./lifecycleRules";
import { SleepDialog } from "./SleepDialog";

export const LIFECYCLE_ICONS: Readonly<Record<LifecycleAction, IconName>> = {
  start: "play",
  pause: "pause",
  interrupt: "events",
  resume: "forward",
  sleep: "sleep",
  wake: "sun",
  stop: "stop",
};

export const NOT_LIVE = "This is the past, or there is no connection: nothing can be changed now.";

interface LifecycleProps {
  agent: Agent;
  /** Which buttons there are; all unless said. */
  actions?: readonly LifecycleAction[];
}

/** A button for everything that can be done with an agent. Those that its state does not allow say why. */
export function Lifecycle({ agent, actions = LIFECYCLE_ACTIONS }: LifecycleProps) {
  const [asking, setAsking] = useState<LifecycleAction | null>(null);
  const isLive = useIsLive();
  const choose = (action: LifecycleAction) =>
    LIFECYCLE[action].asks === "nothing" ? void perform(agent.agentId, action) : setAsking(action);
  return (
    <fieldset className="lifecycle" aria-label="Lifecycle">
      {actions.map((action) => {
        const { label, does } = LIFECYCLE[action];
        const why = isLive ? refusal(agent, action) : NOT_LIVE;
        return (
          <button
            key={action}
            type="button"
            className={action === "stop" ? "danger" : ""}
            disabled={why !== null}
            title={why ?? does}
            onClick={() => choose(action)}
          >
            <Icon name={LIFECYCLE_ICONS[action]} size={14} />
            {label}
          </button>
        );
      })}
      {asking !== null && (
        <LifecycleQuestion
          who={agent.name || agent.agentId}
          action={asking}
          onClose={() => setAsking(null)}
          onAnswer={(params) => void perform(agent.agentId, asking, params)}
        />
      )}
    </fieldset>
  );
}

/** Do it to one agent. Whether it worked is told by the agent's state, or by a notice. */
export function perform(agentId: string, action: LifecycleAction, params: Record<string, unknown> = {}) {
  return act(LIFECYCLE[action].method, { agentId, ...params });
}

interface QuestionProps {
  /** One agent, or several in words. */
  who: string;
  action: LifecycleAction;
  onAnswer: (params: Record<string, unknown>) => void;
  onClose: () => void;
}

/** What has to be known before: a reason, a time to wake up, or that it is meant. */
export function LifecycleQuestion({ who, action, onAnswer, onClose }: QuestionProps) {
  const { asks, label, does } = LIFECYCLE[action];
  if (asks === "sleep") return <SleepDialog who={who} onClose={onClose} onSleep={(plan) => onAnswer({ ...plan })} />;
  if (asks === "confirmation")
    return (
      <Confirm
        title={`${label} ${who}?`}
        action={label}
        reasonLabel="Reason (others see it)"
        onConfirm={(reason) => onAnswer({ reason })}
        onClose={onClose}
      >
        {does}
      </Confirm>
    );
  return <ReasonDialog title={`${label} ${who}`} {...{ action: label, does, onAnswer, onClose }} />;
}

interface ReasonProps {
  title: string;
  action: string;
  does: string;
  onAnswer: (params: Record<string, unknown>) => void;
  onClose: () => void;
}

function ReasonDialog({ title, action, does, onAnswer, onClose }: ReasonProps) {
  const [reason, setReason] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    onClose();
    onAnswer(reason.trim() === "" ? {} : { reason: reason.trim() });
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <p className="quiet">{does}</p>
        <label className="field">
          Reason (others see it)
          <input value={reason} onChange={(event) => setReason(event.target.value)} />
        </label>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
