import type { AgentState, TaskState } from "../client/client";
import { words } from "./format";
import { Icon, type IconName } from "./Icon";

/** Each state has a colour, a sign and a word: none of them is needed to understand the others. */
const ICONS: Record<AgentState | TaskState, IconName> = {
  active: "play",
  idle: "idle",
  paused: "pause",
  sleeping: "sleep",
  stopped: "stop",
  queued: "more",
  running: "play",
  completed: "done",
  continued: "again",
  failed: "close",
  cancelled: "stop",
  dead: "warning",
};

export function StateBadge({ state, title }: { state: AgentState | TaskState; title?: string }) {
  return (
    <span className="state" data-state={state} title={title}>
      <Icon name={ICONS[state]} size={13} />
      {words(state)}
    </span>
  );
}
