import type { UsageReport, UsageTotals } from "../../client/client";
import { bytes, count, duration, money } from "../../parts/format";
import type { Agent } from "../../projection/world";

/** What an agent has used, as far as it is known: the past tells less than the present. */
export interface UsageRow {
  readonly agentId: string;
  readonly tasks: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number | null;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly wallSeconds: number | null;
  readonly cpuSeconds: number | null;
  readonly memoryBytes: number | null;
  readonly contextBytes: number | null;
  readonly mailsSent: number | null;
  readonly mailsReceived: number | null;
}

export interface UsageColumn {
  readonly key: Exclude<keyof UsageRow, "agentId">;
  readonly label: string;
  readonly text: (value: number) => string;
}

export const USAGE_COLUMNS: readonly UsageColumn[] = [
  { key: "inputTokens", label: "Tokens in", text: count },
  { key: "outputTokens", label: "Tokens out", text: count },
  { key: "costUsd", label: "Cost", text: money },
  { key: "tasks", label: "Tasks", text: count },
  { key: "modelCalls", label: "Requests", text: count },
  { key: "toolCalls", label: "Tool calls", text: count },
  { key: "wallSeconds", label: "Time", text: duration },
  { key: "cpuSeconds", label: "CPU", text: duration },
  { key: "memoryBytes", label: "Memory", text: bytes },
  { key: "contextBytes", label: "Contexts", text: bytes },
  { key: "mailsSent", label: "Mails out", text: count },
  { key: "mailsReceived", label: "Mails in", text: count },
];

export function rowOf(agentId: string, { tasks, usage, mailsReceived, contextBytes }: UsageTotals): UsageRow {
  const { cachedTokens: _cached, unpricedTokens: _unpriced, ...used } = usage;
  return { ...used, agentId, tasks, mailsReceived, contextBytes };
}

/** What the world tells of an agent's usage: for the past. */
export function rowOfPast({ agentId, tasks, usage }: Agent): UsageRow {
  const unknown = { wallSeconds: null, cpuSeconds: null, memoryBytes: null, contextBytes: null };
  const { inputTokens, outputTokens, costUsd, modelCalls, toolCalls } = usage;
  const known = { inputTokens, outputTokens, costUsd, modelCalls, toolCalls };
  return { ...known, ...unknown, agentId, tasks, mailsSent: null, mailsReceived: null };
}

/** The rows whose agent fits the filter, by a column, the largest first; by the agent's id if it is none. */
export function usageRows(rows: readonly UsageRow[], by: string, query: string): UsageRow[] {
  const wanted = query.toLowerCase();
  const found = rows.filter(({ agentId }) => agentId.toLowerCase().includes(wanted));
  const column = USAGE_COLUMNS.find(({ key }) => key === by)?.key;
  const byId = (a: UsageRow, b: UsageRow) => (a.agentId < b.agentId ? -1 : 1);
  if (column === undefined) return found.sort(byId);
  return found.sort((a, b) => (b[column] ?? -1) - (a[column] ?? -1) || byId(a, b));
}

export function rowsOf(report: UsageReport): UsageRow[] {
  return Object.entries(report.agents).map(([agentId, totals]) => rowOf(agentId, totals));
}

/** All rows together. */
export function summed(rows: readonly UsageRow[]): UsageRow {
  const sum: Record<string, number | null> = {};
  for (const { key } of USAGE_COLUMNS) {
    const values = rows.map((row) => row[key]).filter((value) => value !== null);
    sum[key] = values.length === 0 ? null : values.reduce((total, value) => total + value, 0);
  }
  return { ...(sum as unknown as UsageRow), agentId: "" };
}
