import type { RefObject } from "react";
import { useIsLive, whyNotLive } from "../../state/page";

interface DecisionProps {
  readonly tool: string;
  readonly input: RefObject<HTMLInputElement | null>;
  readonly reason: string;
  readonly canRefuse: boolean;
  readonly canAllow: boolean;
  readonly onReason: (reason: string) => void;
  readonly onDecide: (isAllowed: boolean) => void;
}

/** Where a call is allowed or refused, with a reason that the agent is told. */
export function Decision({ tool, input, reason, canRefuse, canAllow, onReason, onDecide }: DecisionProps) {
  const isLive = useIsLive();
  return (
    <fieldset className="approvals-decision" aria-label="Decision">
      <input
        ref={input}
        aria-label={`Reason for the decision on ${tool}`}
        placeholder="Reason (the agent is told)"
        value={reason}
        disabled={!canRefuse}
        onChange={(event) => onReason(event.target.value)}
      />
      <button
        type="button"
        className="danger"
        disabled={!canRefuse}
        title={isLive ? "The call does not run, and its model continues" : whyNotLive()}
        onClick={() => onDecide(false)}
      >
        Refuse
      </button>
      <button
        type="button"
        className="primary"
        disabled={!canAllow}
        title={isLive ? "Allow this call exactly as it is (A)" : whyNotLive()}
        onClick={() => onDecide(true)}
      >
        Approve
      </button>
    </fieldset>
  );
}
