import type { NotificationOf } from "../client/client";
import { setClock } from "./clock";
import type { Draft } from "./draft";
import type { Changes } from "./reduce";
import { endWait } from "./waits";
import type { Agent } from "./world";

const NEW_AGENT: Omit<Agent, "agentId" | "name" | "description" | "lastActivityAt"> = {
  state: "idle",
  started: false,
  currentTask: null,
  queueSize: 0,
  sleepingUntil: null,
  sleepingByWallClock: false,
  reason: "",
  unreadMail: 0,
  runningTasks: [],
  progressPercent: null,
  progressNote: "",
  tasks: 0,
  usage: { inputTokens: 0, outputTokens: 0, costUsd: null, modelCalls: 0, toolCalls: 0 },
  wakeEvents: [],
  waitingFor: [],
  pausedFor: [],
  missingTools: [],
  pausedLimit: null,
  runningSince: null,
  lastStepAt: null,
  retryAt: null,
  deadTasks: 0,
  retryReason: "",
};

/** What is left out of the notification is not so any more. */
function changed(draft: Draft, note: NotificationOf<"agent.state_changed" | "agent.sleep_changed">): void {
  const { agentId, to, reason, sleepingUntil, sleepingByWallClock, wakeEvents, pausedLimit } = note.params;
  draft.change("agents", agentId, {
    state: to,
    reason: reason ?? "",
    sleepingUntil: sleepingUntil ?? null,
    sleepingByWallClock: sleepingByWallClock ?? false,
    wakeEvents: wakeEvents ?? [],
    pausedLimit: pausedLimit ?? null,
  });
}

/** Something was done for an agent. Clocks may be set back. */
export function wasActive(draft: Draft, agentId: string, at: number): void {
  const agent = draft.get("agents", agentId);
  if (agent && at > agent.lastActivityAt) draft.change("agents", agentId, { lastActivityAt: at });
}

/** What becomes of agents. */
export const AGENTS: Changes = {
  "agent.created": (draft, { at, params: { agentId, name, description } }) => {
    draft.set("agents", agentId, { ...NEW_AGENT, agentId, name, description, lastActivityAt: at });
  },
  "agent.deleted": (draft, { params: { agentId } }) => {
    draft.delete("agents", agentId);
    for (const [key, { from, to }] of draft.all("links")) {
      if (from === agentId || to === agentId) draft.delete("links", key);
    }
  },
  "agent.started": (draft, { params }) => {
    draft.change("agents", params.agentId, { started: true, reason: params.reason });
  },
  "agent.stopped": (draft, { params }) => {
    draft.change("agents", params.agentId, { started: false, reason: params.reason });
  },
  "agent.state_changed": changed,
  "agent.sleep_changed": changed,
  "agent.redefined": (draft, { params: { agentId, ...changes } }) => draft.change("agents", agentId, changes),
  "agent.tools_missing": (draft, { params }) => {
    draft.change("agents", params.agentId, { missingTools: params.tools });
  },
  "session.opened": (draft, { params }) => {
    setClock(draft, params.clockOffsetSeconds ?? 0);
    for (const [key, wait] of draft.all("waits")) {
      if (wait.kind === "resource" || (wait.kind === "lock" && wait.taskId === null)) endWait(draft, key);
    }
    for (const { agentId, missingTools } of draft.all("agents").values()) {
      if (missingTools.length > 0) draft.change("agents", agentId, { missingTools: [] });
    }
  },
};
