import type { MethodName } from "../client/client";
import type { IconName } from "../parts/Icon";
import { LIFECYCLE_ICONS } from "../parts/Lifecycle";
import { LIFECYCLE, LIFECYCLE_ACTIONS, type LifecycleAction, type Lifecycled, refusal } from "../parts/lifecycleRules";

/** What can be done to one agent or to many. */
export type Action = LifecycleAction | "task";

export interface ActionWords {
  readonly method: MethodName;
  readonly verb: string;
  /** On buttons: the verb, with dots if something is asked first. */
  readonly label: string;
  readonly icon: IconName;
  /** "Pausing" 3 agents. */
  readonly doing: string;
  /** "Paused" 3 agents. */
  readonly done: string;
  /** What it does, in a sentence. */
  readonly hint: string;
}

/** Those that need something, or that cannot be taken back. A pause can: it is not worth a question. */
const ASKING: ReadonlySet<Action> = new Set(["sleep", "wake", "stop", "task"]);

export function asks(action: Action): boolean {
  return ASKING.has(action);
}

function words(action: LifecycleAction, doing: string, done: string): ActionWords {
  const { label: verb, does: hint, method } = LIFECYCLE[action];
  const label = asks(action) ? `${verb}…` : verb;
  return { method, verb, label, icon: LIFECYCLE_ICONS[action], doing, done, hint };
}

export const ACTIONS: Readonly<Record<Action, ActionWords>> = {
  start: words("start", "Starting", "Started"),
  pause: words("pause", "Pausing", "Paused"),
  interrupt: words("interrupt", "Interrupting", "Interrupted"),
  resume: words("resume", "Resuming", "Resumed"),
  sleep: words("sleep", "Putting to sleep", "Put to sleep"),
  wake: words("wake", "Waking", "Woke"),
  stop: words("stop", "Stopping", "Stopped"),
  task: {
    method: "async.sendTask",
    verb: "Send a task to",
    label: "Send a task…",
    icon: "send",
    doing: "Sending the task to",
    done: "Sent the task to",
    hint: "Gives it something to do.",
  },
};

export const ACTION_NAMES: readonly Action[] = [...LIFECYCLE_ACTIONS, "task"];

/** Whether the server would do this to the agent as it is now. */
export function fits(agent: Lifecycled, action: Action): boolean {
  return action === "task" || refusal(agent, action) === null;
}
