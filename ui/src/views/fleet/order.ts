import { words as inWords } from "../../parts/format";
import { LOOKS, type Look, lookOf } from "../../parts/looks";
import type { Agent, Task } from "../../projection/world";
import { standingRank, type WaitsByAgent } from "./standing";

export type ColumnKey =
  | "name"
  | "state"
  | "task"
  | "progress"
  | "waiting"
  | "queue"
  | "mail"
  | "tokens"
  | "cost"
  | "activity";

export interface Column {
  readonly key: ColumnKey;
  readonly label: string;
  readonly isNumber: boolean;
}

export const COLUMNS: readonly Column[] = [
  { key: "name", label: "Agent", isNumber: false },
  { key: "state", label: "State", isNumber: false },
  { key: "task", label: "Task", isNumber: false },
  { key: "progress", label: "Progress", isNumber: false },
  { key: "waiting", label: "Waits for", isNumber: false },
  { key: "queue", label: "Queue", isNumber: true },
  { key: "mail", label: "Mail", isNumber: true },
  { key: "tokens", label: "Tokens", isNumber: true },
  { key: "cost", label: "Cost", isNumber: true },
  { key: "activity", label: "Activity", isNumber: true },
];

export interface Sort {
  readonly column: ColumnKey;
  readonly isDown: boolean;
}

export const FIRST_SORT = "name";
/** Those of which most people look for the largest. */
const LARGEST_FIRST: ReadonlySet<ColumnKey> = new Set([
  "progress",
  "queue",
  "mail",
  "tokens",
  "cost",
  "activity",
  "task",
]);

/** The order that is written in an address: the column, with a minus before it if the largest comes first. */
export function sortFrom(text: string): Sort {
  const name = text.replace(/^-/, "");
  const column = COLUMNS.find(({ key }) => key === name)?.key;
  return column === undefined ? { column: FIRST_SORT, isDown: false } : { column, isDown: text.startsWith("-") };
}

export function sortText({ column, isDown }: Sort): string {
  return isDown ? `-${column}` : column;
}

/** The order after a click on a head: by that column, or the other way round. */
export function sortAfter(sort: Sort, column: ColumnKey): Sort {
  if (sort.column === column) return { column, isDown: !sort.isDown };
  return { column, isDown: LARGEST_FIRST.has(column) };
}

/** The states that an address names; none stands for all. */
export function statesFrom(text: string): ReadonlySet<Look> {
  const named = new Set(text.split(","));
  return new Set(LOOKS.filter((look) => named.has(look)));
}

export interface Arrangement {
  readonly query: string;
  readonly states: ReadonlySet<Look>;
  readonly sort: Sort;
}

interface Around {
  readonly tasks: ReadonlyMap<string, Task>;
  readonly waits: WaitsByAgent;
}

const texts = new WeakMap<Agent, string>();

/** What the filter looks at. */
function textOf(agent: Agent): string {
  let text = texts.get(agent);
  if (text === undefined) {
    text = `${agent.name}\n${agent.agentId}\n${agent.description}\n${inWords(lookOf(agent))}`.toLowerCase();
    texts.set(agent, text);
  }
  return text;
}

/** Those that have all words of the query in name, id, description or state. */
export function filtered(agents: ReadonlyMap<string, Agent>, query: string): Agent[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found: Agent[] = [];
  for (const agent of agents.values()) {
    const text = words.length === 0 ? "" : textOf(agent);
    if (words.every((word) => text.includes(word))) found.push(agent);
  }
  return found;
}

/** How many of these agents are in each state. */
export function counted(agents: readonly Agent[]): Record<Look, number> {
  const counts = Object.fromEntries(LOOKS.map((look) => [look, 0])) as Record<Look, number>;
  for (const agent of agents) counts[lookOf(agent)] += 1;
  return counts;
}

/** The ids of those in the wanted states, in the wanted order. */
export function ordered(
  found: readonly Agent[],
  { states, sort }: Omit<Arrangement, "query">,
  around: Around,
): string[] {
  const wanted = states.size === 0 ? found : found.filter((agent) => states.has(lookOf(agent)));
  const keyed = wanted.map((agent) => ({
    key: keyOf(agent, sort.column, around),
    name: nameOf(agent),
    id: agent.agentId,
  }));
  const way = sort.isDown ? -1 : 1;
  keyed.sort((a, b) => way * compared(a.key, b.key) || compared(a.name, b.name) || compared(a.id, b.id));
  return keyed.map(({ id }) => id);
}

type Key = number | string;

function compared(a: Key, b: Key): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function nameOf(agent: Agent): string {
  return (agent.name || agent.agentId).toLowerCase();
}

function keyOf(agent: Agent, column: ColumnKey, { tasks, waits }: Around): Key {
  switch (column) {
    case "name":
      return nameOf(agent);
    case "state":
      return LOOKS.indexOf(lookOf(agent));
    case "task":
      return tasks.get(agent.runningTasks[0] ?? "")?.summary.toLowerCase() ?? "";
    case "progress":
      return agent.progressPercent ?? -1;
    case "waiting":
      return standingRank(agent, waits.get(agent.agentId));
    case "queue":
      return agent.queueSize;
    case "mail":
      return agent.unreadMail;
    case "tokens":
      return agent.usage.inputTokens + agent.usage.outputTokens;
    case "cost":
      return agent.usage.costUsd ?? -1;
    case "activity":
      return agent.lastActivityAt;
  }
}

export interface Totals {
  readonly running: number;
  readonly queued: number;
  readonly tokens: number;
  readonly costUsd: number | null;
}

export function totals(agents: Iterable<Agent>): Totals {
  let [running, queued, tokens, costUsd] = [0, 0, 0, null as number | null];
  for (const { runningTasks, queueSize, usage } of agents) {
    running += runningTasks.length;
    queued += queueSize;
    tokens += usage.inputTokens + usage.outputTokens;
    if (usage.costUsd !== null) costUsd = (costUsd ?? 0) + usage.costUsd;
  }
  return { running, queued, tokens, costUsd };
}
