import type { Agent, Wait, WaitKind } from "../../projection/world";

/** Why an agent does not go on, one thing after the other; `at` is when it ends by itself at the latest. */
export interface Standing {
  readonly kind: Kind;
  readonly text: string;
  readonly at: number | null;
  /** Where something can be done about it: parts of an address. */
  readonly to?: readonly string[];
}

type Kind = WaitKind | "limit" | "tools" | "failed" | "model" | "start" | "sleep" | "reason";

export type WaitsByAgent = ReadonlyMap<string, readonly Wait[]>;

const NONE: readonly Wait[] = [];

/** Who waits for what. */
export function waitsByAgent(waits: ReadonlyMap<string, Wait>): WaitsByAgent {
  const found = new Map<string, Wait[]>();
  for (const wait of waits.values()) {
    if (wait.agentId === null) continue;
    const known = found.get(wait.agentId);
    if (known) known.push(wait);
    else found.set(wait.agentId, [wait]);
  }
  return found;
}

function waiting({ kind, target, holders }: Wait): string {
  const held = holders.length > 0 ? `, with ${holders.join(", ")}` : "";
  switch (kind) {
    case "reply":
      return `an answer of ${target}`;
    case "lock":
      return `the lock ${target}${held}`;
    case "approval":
      return "your approval";
    case "resource":
      return `${target}${held}`;
  }
}

/** All that an agent waits for, what needs a person first. */
export function standing(agent: Agent, waits: readonly Wait[] = NONE): Standing[] {
  const found: Standing[] = [];
  if (agent.pausedLimit !== null)
    found.push({ kind: "limit", text: `room under ${agent.pausedLimit}: raise the limit`, at: null });
  if (agent.missingTools.length > 0)
    found.push({ kind: "tools", text: `missing tools: ${agent.missingTools.join(", ")}`, at: null });
  if (agent.state === "idle" && !agent.started) found.push({ kind: "start", text: "its start", at: null });
  if (agent.deadTasks > 0)
    found.push({ kind: "failed", text: `you: ${failed(agent.deadTasks)}`, at: null, to: ["dead"] });
  for (const kind of ["approval", "lock", "reply", "resource"] as const)
    for (const wait of waits) if (wait.kind === kind) found.push({ kind, text: waiting(wait), at: null, ...at(wait) });
  if (agent.retryAt !== null) found.push({ kind: "model", text: "its model,", at: agent.retryAt });
  if (agent.sleepingUntil !== null) found.push({ kind: "sleep", text: "", at: agent.sleepingUntil });
  if (agent.wakeEvents.length > 0)
    found.push({ kind: "sleep", text: `event ${agent.wakeEvents.join(" or ")}`, at: null });
  const isHalted = agent.state === "paused" || agent.state === "stopped" || agent.state === "sleeping";
  if (isHalted && agent.reason !== "") found.push({ kind: "reason", text: agent.reason, at: null });
  return found;
}

function at({ kind, target }: Wait): Pick<Standing, "to"> {
  if (kind === "approval") return { to: ["approvals", target] };
  return kind === "lock" ? { to: ["locks", target] } : {};
}

function failed(count: number): string {
  return count === 1 ? "a task failed" : `${count} tasks failed`;
}

const RANKS: readonly Kind[] = [
  ...(["approval", "limit", "tools", "failed", "start", "model"] as const),
  ...(["lock", "reply", "resource", "sleep", "reason"] as const),
];

/** The smaller, the sooner somebody should look. */
export function standingRank(agent: Agent, waits: readonly Wait[] = NONE): number {
  const kinds = standing(agent, waits).map(({ kind }) => RANKS.indexOf(kind));
  return kinds.length === 0 ? RANKS.length : Math.min(...kinds);
}
