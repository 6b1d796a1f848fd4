import type { MethodName } from "../client/client";
import type { Agent } from "../projection/world";

/** What a person can do with an agent as a whole. */
export type LifecycleAction = "start" | "pause" | "interrupt" | "resume" | "sleep" | "wake" | "stop";

export type Lifecycled = Pick<Agent, "state" | "started" | "sleepingUntil" | "wakeEvents" | "runningTasks">;

interface Described {
  /** The word on the button. */
  readonly label: string;
  /** What it does, in a sentence. */
  readonly does: string;
  readonly method: MethodName & `async.${"start" | "pause" | "interrupt" | "resume" | "sleep" | "wake" | "stop"}Agent`;
  /** What is asked for before: nothing, a reason, until when, or whether it is meant. */
  readonly asks: "nothing" | "reason" | "sleep" | "confirmation";
}

/** All actions, in the order of their buttons. */
export const LIFECYCLE: Readonly<Record<LifecycleAction, Described>> = {
  start: { label: "Start", does: "Lets it take work.", method: "async.startAgent", asks: "nothing" },
  pause: {
    label: "Pause",
    does: "Lets no new step begin. The step under way goes on to its end, mail keeps arriving.",
    method: "async.pauseAgent",
    asks: "reason",
  },
  interrupt: {
    label: "Interrupt",
    does: "Pauses it at once: the model request in flight is cancelled, and repeated later.",
    method: "async.interruptAgent",
    asks: "reason",
  },
  resume: { label: "Resume", does: "Lets it go on where it was paused.", method: "async.resumeAgent", asks: "nothing" },
  sleep: {
    label: "Sleep",
    does: "Lets it begin nothing new for a time, until a time, or until an event.",
    method: "async.sleepAgent",
    asks: "sleep",
  },
  wake: { label: "Wake", does: "Ends its sleep. It is told the reason.", method: "async.wakeAgent", asks: "reason" },
  stop: {
    label: "Stop",
    does: "Cancels what it runs and frees everything. Its mail and its queue are kept.",
    method: "async.stopAgent",
    asks: "confirmation",
  },
};

export const LIFECYCLE_ACTIONS = Object.keys(LIFECYCLE) as LifecycleAction[];

/** Why the agent cannot be started, paused and so on as it is now; null if it can. The server decides alike. */
export function refusal(agent: Lifecycled, action: LifecycleAction): string | null {
  return REFUSALS[action](agent);
}

const REFUSALS: Record<LifecycleAction, (agent: Lifecycled) => string | null> = {
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
  wake: (agent) => {
    if (agent.state === "sleeping") return null;
    if (agent.state === "stopped" || agent.state === "idle") return "It does not sleep.";
    return isToSleep(agent) ? null : "It does not sleep.";
  },
  stop: ({ state }) => (state === "stopped" ? "It is stopped already." : null),
};

function notAtWork({ state, started }: Lifecycled): string | null {
  if (state === "stopped") return "It is stopped: start it first.";
  return started ? null : "It has not been started yet.";
}

/** Whether it sleeps as soon as it may: after its work, or when it is resumed. */
function isToSleep({ sleepingUntil, wakeEvents }: Lifecycled): boolean {
  return sleepingUntil !== null || wakeEvents.length > 0;
}
