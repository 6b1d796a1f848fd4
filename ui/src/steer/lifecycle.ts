import type { MethodName } from "../client/client";
import type { IconName } from "../parts/Icon";
import type { Agent } from "../projection/world";

/** What can be done to an agent. */
export type Action = "start" | "pause" | "interrupt" | "resume" | "sleep" | "wake" | "stop" | "delete" | "task";

export interface ActionWords {
  readonly method: MethodName;
  /** On buttons; with dots if something is asked first. */
  readonly label: string;
  readonly icon: IconName;
  /** "Pausing 3 agents"; who it is stands at the dots, or else at the end. */
  readonly doing: string;
  /** "Paused 3 agents." */
  readonly done: string;
  /** What it does, in a sentence. */
  readonly hint: string;
}

export const ACTIONS: Readonly<Record<Action, ActionWords>> = {
  start: {
    method: "async.startAgent",
    label: "Start",
    icon: "play",
    doing: "Starting",
    done: "Started",
    hint: "It begins to take work.",
  },
  pause: {
    method: "async.pauseAgent",
    label: "Pause",
    icon: "pause",
    doing: "Pausing",
    done: "Paused",
    hint: "No new step begins; the one under way ends. Mail keeps arriving.",
  },
  interrupt: {
    method: "async.interruptAgent",
    label: "Interrupt",
    icon: "events",
    doing: "Interrupting",
    done: "Interrupted",
    hint: "Paused at once: the model request in flight is cancelled, and repeated later.",
  },
  resume: {
    method: "async.resumeAgent",
    label: "Resume",
    icon: "forward",
    doing: "Resuming",
    done: "Resumed",
    hint: "It resumes where it was paused.",
  },
  sleep: {
    method: "async.sleepAgent",
    label: "Sleep…",
    icon: "sleep",
    doing: "Putting … to sleep",
    done: "Put … to sleep",
    hint: "It takes no work for a time, until a time, or until an event.",
  },
  wake: {
    method: "async.wakeAgent",
    label: "Wake…",
    icon: "sun",
    doing: "Waking",
    done: "Woke",
    hint: "Its sleep ends; it is told the reason.",
  },
  stop: {
    method: "async.stopAgent",
    label: "Stop…",
    icon: "stop",
    doing: "Stopping",
    done: "Stopped",
    hint: "What it runs is cancelled. Its mail and its queue are kept.",
  },
  delete: {
    method: "async.deleteAgent",
    label: "Delete agent…",
    icon: "close",
    doing: "Deleting",
    done: "Deleted",
    hint: "It goes for good, with its conversations, mail, schedules and files.",
  },
  task: {
    method: "async.sendTask",
    label: "Send a task…",
    icon: "send",
    doing: "Sending the task to",
    done: "Sent the task to",
    hint: "It is given something to do.",
  },
};

export const ACTION_NAMES = Object.keys(ACTIONS) as Action[];

/** Those that ask for something before they are done. */
const ASKING: ReadonlySet<Action> = new Set(["sleep", "wake", "stop", "delete", "task"]);

export function asks(action: Action): boolean {
  return ASKING.has(action);
}

export type Steered = Pick<Agent, "state" | "started" | "sleepingUntil" | "wakeEvents" | "runningTasks">;

/** Whether the server would do this to the agent as it is now. */
export function fits(agent: Steered, action: Action): boolean {
  return refusal(agent, action) === null;
}

/** What is in the way of doing this to the agent as it is now, in a sentence; null if nothing is. */
export function refusal(agent: Steered, action: Action): string | null {
  return REFUSALS[action](agent);
}

const REFUSALS: Readonly<Record<Action, (agent: Steered) => string | null>> = {
  start: ({ state, started }) => {
    if (state === "stopped" || (state === "idle" && !started)) return null;
    if (state === "paused") return "It is paused: resume it.";
    return state === "sleeping" ? "It sleeps: wake it." : "It has been started already.";
  },
  pause: (agent) => (agent.state === "paused" ? "It is paused already." : notAtWork(agent)),
  interrupt: (agent) => {
    if (agent.state !== "paused") return notAtWork(agent);
    return agent.runningTasks.length > 0 ? null : "It is paused already, and nothing of it runs.";
  },
  resume: ({ state }) => (state === "paused" ? null : "It is not paused."),
  sleep: (agent) => (agent.state === "paused" ? "It is paused: resume it first." : notAtWork(agent)),
  wake: ({ state, sleepingUntil, wakeEvents }) => {
    const isToSleep = sleepingUntil !== null || wakeEvents.length > 0; // after its work, or when it is resumed
    return state !== "stopped" && (state === "sleeping" || isToSleep) ? null : "It does not sleep.";
  },
  stop: ({ state }) => (state === "stopped" ? "It is stopped already." : null),
  delete: () => null,
  task: () => null,
};

function notAtWork({ state, started }: Steered): string | null {
  if (state === "stopped") return "It is stopped: start it first.";
  return started ? null : "It has not been started yet.";
}

/** The word on its button without the dots. */
export function verbOf(action: Action): string {
  return ACTIONS[action].label.replace("…", "");
}

/** "Paused 3 agents", "Put alice to sleep". */
export function toldOf(words: string, whom: string): string {
  return words.includes("…") ? words.replace("…", () => whom) : `${words} ${whom}`;
}
