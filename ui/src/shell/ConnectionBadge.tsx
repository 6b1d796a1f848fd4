import type { ConnectionState } from "../client/client";
import { usePage } from "../state/page";

const WORDS: Record<ConnectionState, string> = {
  connecting: "connecting",
  open: "live",
  lost: "not connected, trying again",
  refused: "refused",
  closed: "closed",
};

/** Whether what is shown is current. */
export function ConnectionBadge() {
  const connection = usePage((page) => page.connection);
  const problem = usePage((page) => page.problem ?? page.ended);
  const isOther = usePage((page) => page.playhead !== null || page.ended !== null);
  return (
    <span className="connection" data-connection={connection} role="status" title={problem?.message}>
      {isOther && connection === "open" ? "connected" : WORDS[connection]}
    </span>
  );
}
