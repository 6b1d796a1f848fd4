import type { ApprovalState } from "../../client/client";
import { Icon, type IconName } from "../../parts/Icon";

const SIGNS: Record<ApprovalState, { icon: IconName; look: string }> = {
  approved: { icon: "done", look: "good" },
  refused: { icon: "close", look: "bad" },
  withdrawn: { icon: "back", look: "plain" },
  expired: { icon: "schedules", look: "warn" },
  pending: { icon: "more", look: "plain" },
};

/** What became of a call, in a colour, a sign and a word. */
export function Sign({ state }: { state: ApprovalState }) {
  const { icon, look } = SIGNS[state];
  return (
    <span className="approvals-sign" data-look={look}>
      <Icon name={icon} size={13} /> {state}
    </span>
  );
}
