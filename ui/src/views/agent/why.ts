import type { Agent, Wait } from "../../projection/world";

/** Why an agent is as it is, one thing at a time. */
export type Why =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "sleep";
      readonly isAsleep: boolean;
      readonly until: number | null;
      readonly events: readonly string[];
    }
  | { readonly kind: "agent" | "lock" | "approval" | "resource"; readonly target: string; readonly wait: Wait | null }
  | { readonly kind: "limit"; readonly limit: string }
  | { readonly kind: "dead"; readonly count: number }
  | { readonly kind: "retry"; readonly at: number; readonly reason: string }
  | { readonly kind: "tools"; readonly tools: readonly string[] };

const WAIT_KINDS = { reply: "agent", lock: "lock", approval: "approval", resource: "resource" } as const;

/** Everything that keeps the agent from working, or that it was told about its state. */
export function whys(agent: Agent, waits: Iterable<Wait>): Why[] {
  const found: Why[] = [];
  if (agent.state === "idle" && !agent.started)
    found.push({ kind: "text", text: "It has not been started yet: what it is given waits." });
  if (agent.reason !== "") found.push({ kind: "text", text: agent.reason });
  if (agent.sleepingUntil !== null || agent.wakeEvents.length > 0 || agent.state === "sleeping") {
    const { sleepingUntil: until, wakeEvents: events } = agent;
    found.push({ kind: "sleep", isAsleep: agent.state === "sleeping", until, events });
  }
  const told = new Set<string>();
  for (const wait of waits) {
    if (wait.agentId !== agent.agentId) continue;
    const kind = WAIT_KINDS[wait.kind];
    told.add(`${kind}:${wait.target}`);
    found.push({ kind, target: wait.target, wait });
  }
  for (const name of agent.waitingFor) {
    const why = waitNamed(name);
    if (!told.has(`${why.kind}:${why.target}`)) found.push(why);
  }
  if (agent.pausedFor.length > 0 && ![...told].some((key) => key.startsWith("resource:")))
    found.push({ kind: "resource", target: agent.pausedFor.join(", "), wait: null });
  if (agent.retryAt !== null) found.push({ kind: "retry", at: agent.retryAt, reason: agent.retryReason });
  if (agent.pausedLimit !== null) found.push({ kind: "limit", limit: agent.pausedLimit });
  if (agent.missingTools.length > 0) found.push({ kind: "tools", tools: agent.missingTools });
  if (agent.deadTasks > 0) found.push({ kind: "dead", count: agent.deadTasks });
  return found;
}

/** What a status names in `waitingFor`: an agent, `lock:name` or `approval:id`. */
function waitNamed(name: string): { kind: "agent" | "lock" | "approval"; target: string; wait: null } {
  const [kind = "", ...rest] = name.split(":");
  if ((kind === "lock" || kind === "approval") && rest.length > 0) return { kind, target: rest.join(":"), wait: null };
  return { kind: "agent", target: name, wait: null };
}
