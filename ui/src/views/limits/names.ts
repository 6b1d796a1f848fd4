import { bytes, duration, money } from "../../parts/format";

export type Unit = "number" | "tokens" | "money" | "seconds" | "bytes";
export type Group = "The session as a whole" | "Work" | "Tokens and money" | "Size" | "Tools";

interface Known {
  readonly title: string;
  readonly group: Group;
  /** What happens when it is reached. */
  readonly outcome: string;
}

const PAUSED = "The agent that wants more is paused until you raise it.";
const FAILS = "The task fails.";
const ENDED = "The processes of the tool are ended.";

const KNOWN: Readonly<Record<string, Known>> = {
  max_started_agents: {
    title: "Started agents",
    group: "The session as a whole",
    outcome: "The start of another is refused.",
  },
  max_created_agents: {
    title: "Created agents",
    group: "The session as a whole",
    outcome: "An agent that wants to create another is refused.",
  },
  max_concurrent_loops: {
    title: "Loops at once",
    group: "The session as a whole",
    outcome: "Work waits in its queue.",
  },
  max_tokens: { title: "Tokens in all", group: "The session as a whole", outcome: PAUSED },
  max_cost_usd: { title: "Cost in all", group: "The session as a whole", outcome: PAUSED },
  max_concurrent_tasks: { title: "Tasks at once", group: "Work", outcome: "Work waits in the queue of the agent." },
  max_queue_length: { title: "Queue", group: "Work", outcome: "Work, mail and messages are refused for a while." },
  max_steps_per_task: { title: "Steps of a task", group: "Work", outcome: FAILS },
  max_same_calls: {
    title: "Equal calls in a row",
    group: "Work",
    outcome: "The call is not made; then the task fails.",
  },
  max_continuations: { title: "Continuations", group: "Work", outcome: FAILS },
  max_task_seconds: { title: "Time of a task", group: "Work", outcome: FAILS },
  max_answer_seconds: { title: "Time of an answer", group: "Work", outcome: FAILS },
  max_retry_after_seconds: {
    title: "Wait that a provider asks for",
    group: "Work",
    outcome: "It is asked again after this time.",
  },
  max_outage_seconds: {
    title: "Outage of a provider",
    group: "Work",
    outcome: "The request is no longer repeated, and the task fails.",
  },
  max_switch_depth: {
    title: "Depth of switches",
    group: "Work",
    outcome: "The question to the next agent is refused.",
  },
  switch_timeout_seconds: { title: "Wait for an answer", group: "Work", outcome: "The agent no longer waits." },
  max_tasks_per_tree: {
    title: "Tasks of a task tree",
    group: "Work",
    outcome: "Its agents can give each other no more work.",
  },
  max_tokens_per_tree: { title: "Tokens of a task tree", group: "Tokens and money", outcome: FAILS },
  max_cost_usd_per_tree: { title: "Cost of a task tree", group: "Tokens and money", outcome: FAILS },
  max_tokens_per_agent: { title: "Tokens of an agent", group: "Tokens and money", outcome: PAUSED },
  max_cost_usd_per_agent: { title: "Cost of an agent", group: "Tokens and money", outcome: PAUSED },
  max_prompt_bytes: { title: "Prompt", group: "Size", outcome: "The prompt is refused." },
  max_mail_bytes: { title: "Mail", group: "Size", outcome: "The mail is refused." },
  max_result_bytes: { title: "Result of a tool", group: "Size", outcome: "The result is cut." },
  max_answer_bytes: { title: "Answer of a model", group: "Size", outcome: FAILS },
  max_context_bytes: { title: "Conversations in memory", group: "Size", outcome: FAILS },
  max_file_bytes: { title: "File", group: "Size", outcome: "The file is not read or written as a whole." },
  max_tool_seconds: { title: "Time of a tool", group: "Tools", outcome: ENDED },
  max_tool_cpu_seconds: { title: "CPU time of a tool", group: "Tools", outcome: ENDED },
  max_tool_memory_bytes: { title: "Memory of a tool", group: "Tools", outcome: "Its process gets no more memory." },
  max_tool_processes: { title: "Processes of a tool", group: "Tools", outcome: "It can start no more of them." },
};

/** What is known of a limit; one that a newer server has is shown by its name. */
export function aboutLimit(name: string): Known {
  return KNOWN[name] ?? { title: name, group: "Work", outcome: "" };
}

export function unitOf(name: string): Unit {
  if (name.endsWith("_seconds")) return "seconds";
  if (name.endsWith("_bytes")) return "bytes";
  if (name.includes("cost_usd")) return "money";
  return name.includes("tokens") ? "tokens" : "number";
}

/** Whether 0 stands for "no limit". */
export function canBeEndless(name: string): boolean {
  const unit = unitOf(name);
  return unit === "tokens" || unit === "money";
}

/** An amount of what the limit is about. */
export function amount(name: string, value: number): string {
  switch (unitOf(name)) {
    case "seconds":
      return duration(value);
    case "bytes":
      return bytes(value);
    case "money":
      return money(value);
    default:
      return value.toLocaleString("en");
  }
}

/** The value of a limit for people. */
export function limitText(name: string, value: number): string {
  return value === 0 && canBeEndless(name) ? "no limit" : amount(name, value);
}

const MAY_BE_ZERO = new Set(["max_continuations", "max_started_agents", "max_created_agents"]);
const MOST = 1e15;
const MOST_SECONDS = 1e9;
const WHOLE: ReadonlySet<Unit> = new Set(["number", "tokens", "bytes"]);

const NUMBERS: Readonly<Record<Unit, string>> = {
  number: "a whole number, such as 10",
  tokens: "a whole number of tokens, such as 100000",
  money: "a number of US dollars, such as 2.50",
  seconds: "a number of seconds, such as 600",
  bytes: "a whole number of bytes, such as 65536",
};

/** The number that was typed, or a sentence that says what is wrong with it. */
export function readLimit(name: string, text: string): number | string {
  const { title } = aboutLimit(name);
  const unit = unitOf(name);
  const plain = text.replaceAll(/[\s,_]/g, "");
  const value = Number(plain);
  if (plain === "" || Number.isNaN(value)) return `${title} must be ${NUMBERS[unit]}.`;
  if (unit === "seconds")
    return value > 0 && value < MOST_SECONDS ? value : `${title} must be more than 0 and below 1,000,000,000 seconds.`;
  if (WHOLE.has(unit) && !Number.isInteger(value)) return `${title} must be a whole number.`;
  const least = canBeEndless(name) || MAY_BE_ZERO.has(name) ? 0 : 1;
  if (value < least || value > MOST) return `${title} must be at least ${least} and at most 1,000,000,000,000,000.`;
  return value;
}

/** How much of a limit is used, from 0 to 1; null where that cannot be told. */
export function shareOf({ name, value, used }: { name: string; value: number; used: number | null }): number | null {
  if (used === null || (value === 0 && canBeEndless(name))) return null;
  return value === 0 ? 1 : Math.min(1, used / value);
}

const GROUPS: readonly Group[] = ["The session as a whole", "Work", "Tokens and money", "Size", "Tools"];

/** The limits by what they are about, in a fixed order. */
export function grouped<Limit extends { name: string }>(limits: readonly Limit[]): [Group, Limit[]][] {
  return GROUPS.map((group): [Group, Limit[]] => [
    group,
    limits.filter(({ name }) => aboutLimit(name).group === group),
  ]).filter(([, members]) => members.length > 0);
}
