import type { AgentState } from "../client/client";
import type { Agent } from "../projection/world";
import type { IconName } from "./Icon";

/** What an agent is shown as: its state, or what that would hide. */
export type Look = AgentState | "retrying" | "failed" | "not_started";

/** In the order in which they are listed. */
export const LOOKS: readonly Look[] = [
  "active",
  "retrying",
  "paused",
  "sleeping",
  "idle",
  "failed",
  "not_started",
  "stopped",
];

export const LOOK_ICONS: Readonly<Record<Look, IconName>> = {
  active: "play",
  retrying: "again",
  idle: "idle",
  failed: "warning",
  not_started: "more",
  paused: "pause",
  sleeping: "sleep",
  stopped: "stop",
};

type Looked = Pick<Agent, "state" | "started" | "retryAt" | "deadTasks" | "reason">;

/**
 * One that waits to ask its model again is not at work, and one with nothing to do is not well while a task of it
 * failed, nor ready before it was started.
 */
export function lookOf({ state, started, retryAt, deadTasks }: Omit<Looked, "reason">): Look {
  if (state === "active") return retryAt === null ? "active" : "retrying";
  if (state !== "idle") return state;
  if (!started) return "not_started";
  return deadTasks > 0 ? "failed" : "idle";
}

/** Why it looks so, in a sentence; empty if there is nothing to say. */
export function lookHint(agent: Looked): string {
  switch (lookOf(agent)) {
    case "retrying":
      return "Its model could not be reached, or failed: the request is repeated by itself.";
    case "not_started":
      return "It has not been started yet: what it is given waits.";
    case "failed":
      return `${failedTasks(agent.deadTasks)} and ${agent.deadTasks === 1 ? "waits" : "wait"} among the dead letters.`;
    default:
      return agent.reason;
  }
}

export function failedTasks(count: number): string {
  return count === 1 ? "A task of it failed" : `${count} of its tasks failed`;
}
