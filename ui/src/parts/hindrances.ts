import type { Agent, Wait } from "../projection/world";

/** What keeps an agent from working, or a task of it from being done. */
export type Hindrance =
  | { readonly kind: "limit"; readonly limit: string }
  | { readonly kind: "tools"; readonly tools: readonly string[] }
  | { readonly kind: "failed"; readonly count: number }
  | { readonly kind: "not_started" }
  | { readonly kind: "retry"; readonly at: number; readonly reason: string }
  | { readonly kind: "wait"; readonly wait: Known }
  | { readonly kind: "sleep"; readonly isAsleep: boolean; readonly until: number | null; readonly events: Events }
  | { readonly kind: "halted"; readonly state: "paused" | "stopped" | "sleeping"; readonly reason: string };

type Events = readonly string[];

/** A wait; of one that only the status of the agent names it is not known since when. */
export type Known = Pick<Wait, "kind" | "target" | "holders" | "deadlineAt"> & { readonly since: number | null };

/** All that keeps an agent from working, what needs a person first. `waits` are its own. */
export function hindrances(agent: Agent, waits: readonly Wait[]): Hindrance[] {
  const { state, pausedLimit, missingTools, deadTasks, retryAt, retryReason, reason } = agent;
  const waited = waitsOf(agent, waits).map((wait) => ({ kind: "wait", wait }) as const);
  const found: Hindrance[] = waited.filter(({ wait }) => isForPerson(wait));
  if (pausedLimit !== null) found.push({ kind: "limit", limit: pausedLimit });
  if (missingTools.length > 0) found.push({ kind: "tools", tools: missingTools });
  if (deadTasks > 0) found.push({ kind: "failed", count: deadTasks });
  if (state === "idle" && !agent.started) found.push({ kind: "not_started" });
  if (retryAt !== null) found.push({ kind: "retry", at: retryAt, reason: retryReason });
  for (const kind of ["lock", "reply", "resource"]) found.push(...waited.filter(({ wait }) => wait.kind === kind));
  const { sleepingUntil: until, wakeEvents: events } = agent;
  if (until !== null || events.length > 0 || state === "sleeping")
    found.push({ kind: "sleep", isAsleep: state === "sleeping", until, events });
  if (state === "paused" || state === "stopped" || state === "sleeping") found.push({ kind: "halted", state, reason });
  return found;
}

/** What the agent waits for, each once: the status may name what the log has not told yet. */
function waitsOf({ waitingFor, pausedFor }: Agent, waits: readonly Wait[]): Known[] {
  const found: Known[] = [...waits];
  const unknown = { holders: [], since: null, deadlineAt: null };
  for (const name of waitingFor) {
    const named = waitNamed(name);
    if (!waits.some(({ kind, target }) => kind === named.kind && target === named.target))
      found.push({ ...named, ...unknown });
  }
  if (pausedFor.length > 0 && !waits.some(({ kind }) => kind === "resource"))
    found.push({ kind: "resource", target: pausedFor.join(", "), ...unknown });
  return found;
}

/** Whether a person ends the wait: by deciding on a call, or by answering a question. */
export function isForPerson({ kind }: Pick<Wait, "kind">): boolean {
  return kind === "approval" || kind === "question";
}

/** What a status names in `waitingFor`: an agent, `lock:name`, `approval:id` or `question:id`. */
function waitNamed(name: string): Pick<Wait, "kind" | "target"> {
  const [kind = "", ...rest] = name.split(":");
  if ((kind === "lock" || kind === "approval" || kind === "question") && rest.length > 0)
    return { kind, target: rest.join(":") };
  return { kind: "reply", target: name };
}

const REST_ORDER = ["limit", "halted", "tools", "not_started"] as const;

/** Why an agent takes no work before somebody does something, or before its time, in words that follow its name. */
export function restOf(agent: Agent): string | null {
  const found = hindrances(agent, []);
  for (const kind of REST_ORDER) {
    const rest = found.find((each) => each.kind === kind);
    if (rest !== undefined) return restWords(rest);
  }
  return null;
}

function restWords(rest: Hindrance): string | null {
  switch (rest.kind) {
    case "limit":
      return `is paused at its limit ${rest.limit}`;
    case "halted":
      return rest.state === "sleeping" ? "sleeps" : `is ${rest.state}`;
    case "tools":
      return `waits for tools that are missing: ${rest.tools.join(", ")}`;
    case "not_started":
      return "has not been started yet";
    default:
      return null;
  }
}
