import type { Draft } from "./draft";
import type { Changes } from "./reduce";
import type { Agent } from "./world";

const NEW_AGENT: Omit<Agent, "agentId" | "name" | "description" | "lastActivityAt"> = {
  state: "stopped",
  started: false,
  currentTask: null,
  queueSize: 0,
  sleepingUntil: null,
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
};

interface Slept {
  agentId: string;
  reason?: string;
  sleepingUntil?: number | null;
  wakeEvents?: string[];
}

function slept(draft: Draft, { params: { agentId, reason, sleepingUntil, wakeEvents } }: { params: Slept }): void {
  const told = reason === undefined ? {} : { reason };
  draft.change("agents", agentId, { sleepingUntil: sleepingUntil ?? null, wakeEvents: wakeEvents ?? [], ...told });
}

/** What becomes of agents. */
export const AGENTS: Changes = {
  "agent.created": (draft, { at, params }) => {
    draft.set("agents", params.agentId, { ...NEW_AGENT, ...params, lastActivityAt: at });
  },
  "agent.started": (draft, { params }) => {
    draft.change("agents", params.agentId, { started: true, reason: params.reason });
  },
  "agent.stopped": (draft, { params }) => {
    draft.change("agents", params.agentId, { started: false, reason: params.reason });
  },
  "agent.state_changed": (draft, note) => {
    draft.change("agents", note.params.agentId, { state: note.params.to });
    slept(draft, note);
  },
  "agent.sleep_changed": slept,
  "agent.tools_missing": (draft, { params }) => {
    draft.change("agents", params.agentId, { missingTools: params.tools });
  },
};
