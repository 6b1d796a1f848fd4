import type { TaskState } from "../client/client";
import type { Agent } from "../projection/world";
import { words } from "./format";
import { Icon, type IconName } from "./Icon";
import { LOOK_ICONS, lookHint, lookOf } from "./looks";

/** Each state has a colour, a sign and a word: none of them is needed to understand the others. */
const ICONS: Record<TaskState, IconName> = {
  queued: "more",
  running: "play",
  completed: "done",
  continued: "again",
  joined: "forward",
  failed: "close",
  cancelled: "stop",
  dead: "warning",
};

/** The state of a task. */
export function StateBadge({ state }: { state: TaskState }) {
  return <Badge state={state} icon={ICONS[state]} title="" />;
}

/** The state of an agent, and what that alone would hide. */
export function AgentBadge({ agent }: { agent: Agent }) {
  const look = lookOf(agent);
  return <Badge state={look} icon={LOOK_ICONS[look]} title={lookHint(agent)} />;
}

function Badge({ state, icon, title }: { state: string; icon: IconName; title: string }) {
  return (
    <span className="state" data-state={state} title={title || undefined}>
      <Icon name={icon} size={13} />
      {words(state)}
    </span>
  );
}
