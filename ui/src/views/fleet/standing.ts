import { type Hindrance, hindrances } from "../../parts/hindrances";
import { failedTasks } from "../../parts/looks";
import { waitedFor, waitedParts } from "../../parts/waited";
import type { Agent, Wait, WaitKind } from "../../projection/world";

/** Why an agent does not go on, one thing after the other; `at` is when it ends by itself at the latest. */
export interface Standing {
  readonly kind: Kind;
  readonly text: string;
  readonly at: number | null;
  /** Where something can be done about it: parts of an address. */
  readonly to?: readonly string[];
}

type Kind = WaitKind | Exclude<Hindrance["kind"], "wait">;

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

/** All that an agent waits for, what needs a person first. */
export function standing(agent: Agent, waits: readonly Wait[] = NONE): Standing[] {
  return hindrances(agent, waits).flatMap(told);
}

function told(hindrance: Hindrance): Standing[] {
  const { kind } = hindrance;
  switch (kind) {
    case "limit":
      return [{ kind, text: `room under ${hindrance.limit}: raise the limit`, at: null }];
    case "tools":
      return [{ kind, text: `missing tools: ${hindrance.tools.join(", ")}`, at: null }];
    case "failed":
      return [{ kind, text: failedTasks(hindrance.count), at: null, to: ["dead"] }];
    case "not_started":
      return [{ kind, text: "its start", at: null }];
    case "retry":
      return [{ kind, text: "its model,", at: hindrance.at }];
    case "wait":
      return [waiting(hindrance.wait)];
    case "sleep":
      return asleep(hindrance);
    case "halted":
      return hindrance.reason === "" ? [] : [{ kind, text: hindrance.reason, at: null }];
  }
}

function waiting(wait: Extract<Hindrance, { kind: "wait" }>["wait"]): Standing {
  const { to } = waitedParts(wait);
  return { kind: wait.kind, text: waitedFor(wait), at: null, ...(to !== null && { to }) };
}

function asleep({ kind, until, events }: Extract<Hindrance, { kind: "sleep" }>): Standing[] {
  const found: Standing[] = [];
  if (until !== null) found.push({ kind, text: "", at: until });
  if (events.length > 0) found.push({ kind, text: `event ${events.join(" or ")}`, at: null });
  return found;
}

/** In the order in which they are told. */
const RANKS: readonly Kind[] = [
  "approval",
  "question",
  "limit",
  "tools",
  "failed",
  "not_started",
  "retry",
  "lock",
  "reply",
  "resource",
  "sleep",
  "halted",
];

/** The smaller, the sooner somebody should look. */
export function standingRank(agent: Agent, waits: readonly Wait[] = NONE): number {
  const [first] = standing(agent, waits);
  return first === undefined ? RANKS.length : RANKS.indexOf(first.kind);
}
