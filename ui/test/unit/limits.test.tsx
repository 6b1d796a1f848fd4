import { cleanup, screen, act as settle, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type {
  LimitState,
  Notification,
  ProviderAccount,
  ServerInfo,
  Usage,
  UsageReport,
} from "../../src/client/client";
import { tell, usePage } from "../../src/state/page";
import LimitsView from "../../src/views/limits/LimitsView";
import { grouped, limitText, readLimit, shareOf } from "../../src/views/limits/names";
import { shownOf } from "../../src/views/limits/reached";
import { rowOfPast, summed, usageRows } from "../../src/views/limits/usage";
import { note, renderAt, setStage } from "./stage";

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

describe("a limit", () => {
  test("is written in its unit, and 0 says that there is none where it may", () => {
    expect(limitText("max_tokens", 0)).toBe("no limit");
    expect(limitText("max_queue_length", 10_000)).toBe("10,000");
    expect(limitText("max_task_seconds", 604_800)).toBe("7 d");
    expect(limitText("max_file_bytes", 16 * 2 ** 20)).toBe("16 MiB");
    expect(limitText("max_cost_usd", 25)).toBe("$25.00");
    expect(limitText("max_continuations", 0)).toBe("0");
  });

  test("is checked as the server checks it", () => {
    expect(readLimit("max_queue_length", "10,000")).toBe(10_000);
    expect(readLimit("max_queue_length", "0")).toContain("at least 1");
    expect(readLimit("max_queue_length", "1.5")).toContain("whole number");
    expect(readLimit("max_cost_usd", "0.5")).toBe(0.5);
    expect(readLimit("max_task_seconds", "0")).toContain("more than 0");
    expect(readLimit("max_tokens", "0")).toBe(0);
    expect(readLimit("max_tokens", "")).toContain("a whole number of tokens");
    expect(readLimit("max_tokens", "many")).toContain("a whole number of tokens");
  });

  test("is used by a share that is never more than all of it", () => {
    expect(shareOf({ name: "max_queue_length", value: 10, used: 5 })).toBe(0.5);
    expect(shareOf({ name: "max_queue_length", value: 10, used: 50 })).toBe(1);
    expect(shareOf({ name: "max_tokens", value: 0, used: 50 })).toBeNull();
    expect(shareOf({ name: "max_queue_length", value: 10, used: null })).toBeNull();
  });

  test("that only a newer server knows is shown too", () => {
    expect(grouped([{ name: "max_newly_made" }])).toEqual([["Work", [{ name: "max_newly_made" }]]]);
  });
});

function reached(agentId: string, limit = "max_queue_length") {
  const params = { scope: "agent" as const, limit, agentId, taskId: null, used: 11, max: 10 };
  return note("limit.reached", { ...params, action: "refused" }) as Extract<Notification, { name: "limit.reached" }>;
}

test("what was reached is shown with the newest first, up to the time that is shown", () => {
  const both = [reached("alice"), reached("bob")] as const;
  const [one, two] = both;
  expect(shownOf(both, two.seq, "")).toEqual([two, one]);
  expect(shownOf(both, one.seq, "")).toEqual([one]);
  expect(shownOf(both, two.seq, "alice")).toEqual([one]);
});

const SPENT = { inputTokens: 1, outputTokens: 2, costUsd: null, modelCalls: 3, toolCalls: 4 };
const USAGE: Usage = {
  ...SPENT,
  ...{ cachedTokens: 0, wallSeconds: 5, cpuSeconds: 6, memoryBytes: 7, mailsSent: 8, unpricedTokens: 0 },
};
const TOTALS = { tasks: 1, usage: USAGE, mailsReceived: 9, contextBytes: 10 };

test("usage is sorted by a column, and of the past only what the log tells is known", () => {
  const row = (agentId: string, inputTokens: number) =>
    rowOfPast({ agentId, tasks: 1, usage: { ...SPENT, inputTokens } } as Parameters<typeof rowOfPast>[0]);
  const rows = [row("b", 1), row("a", 1), row("c", 5)];
  expect(usageRows(rows, "inputTokens", "").map(({ agentId }) => agentId)).toEqual(["c", "a", "b"]);
  expect(usageRows(rows, "agentId", "").map(({ agentId }) => agentId)).toEqual(["a", "b", "c"]);
  expect(usageRows(rows, "agentId", "B").map(({ agentId }) => agentId)).toEqual(["b"]);
  expect(summed(rows)).toMatchObject({ inputTokens: 7, costUsd: null, cpuSeconds: null });
});

const QUEUE: LimitState = { name: "max_queue_length", value: 10, source: "session", used: 9, reached: 3 };
const TOKENS: LimitState = { name: "max_tokens", value: 0, source: "default", used: 500, reached: 0 };
const REPORT = { scope: "session" as const, agentId: null, limits: [TOKENS, QUEUE] };
const USED: UsageReport = { agents: { alice: TOTALS }, total: TOTALS };
const ALICE = [note("agent.created", { agentId: "alice", name: "Alice", description: "" })];

const STORED = {
  ...{ sessionId: "default", firstSeq: 5, lastSeq: 9, sizeBytes: 2048, databaseBytes: 8192, freeBytes: 1024 },
  parts: [{ name: "log", rows: 5, sizeBytes: 2048 }],
};
const ERASED = { threads: 1, tasks: 2, mails: 0, events: 0, messages: 0, notifications: 4 };

function stage(fail = "", accounts: ProviderAccount[] = []) {
  return setStage(ALICE, {
    "limits.get": () => REPORT,
    "usage.get": () => USED,
    "providers.list": () => ({ accounts }),
    "session.storage": () => STORED,
    "session.prune": ({ olderThan, dryRun = false }) => {
      if (olderThan === "soon") throw new Error("'soon' is no age.");
      return { sessionId: "default", before: 1, firstSeq: 9, erased: ERASED, dryRun };
    },
    "events.list": () => ({ notifications: [], lastSeq: 1 }),
    "limits.set": () => {
      if (fail) throw new Error(fail);
      return REPORT;
    },
  });
}

test("a limit tells its value, where it is stated, its use and how often it was reached", async () => {
  stage();
  renderAt("/s/default/limits", <LimitsView />);
  const row = (await screen.findByRole("rowheader", { name: "Queue" })).closest("tr") as HTMLElement;
  for (const text of ["10", "session", "9", "3 ×"]) expect(within(row).getByText(text)).toBeTruthy();
  expect(within(row).getByRole("progressbar").getAttribute("value")).toBe("90");
});

test("an account of a provider that is down tells who waits, and why", async () => {
  const counts = { allowed: 1, underWay: 0, waiting: 480, requests: 512, refusals: 3, outages: 7 };
  const retryAt = Date.now() / 1000 + 90;
  const account = { account: "openai-chat at api.openai.com", provider: "openai-chat", ...counts };
  stage("", [{ ...account, state: "down", retryAt, reason: "The provider failed (status 503)." }]);
  renderAt("/s/default/limits", <LimitsView />);
  const part = await screen.findByRole("region", { name: "Providers" });
  for (const text of ["openai-chat at api.openai.com", "down", "The provider failed (status 503)."])
    expect(within(part).getByText(text)).toBeTruthy();
  expect(part.textContent).toContain("0 of 1 under way, 480 wait; 512 requests, 3 refused, 7 found it down");
  expect(part.textContent).toMatch(/next request in 1 min/);
});

test("a limit is changed after its number was checked, and the server's refusal is told in the form", async () => {
  const { calls } = stage("Nothing was changed.");
  renderAt("/s/default/limits", <LimitsView />);
  await userEvent.click(await screen.findByRole("button", { name: "Change Queue" }));
  const field = screen.getByLabelText(/^Value/);
  await userEvent.clear(field);
  await userEvent.type(field, "0");
  await userEvent.click(screen.getByRole("button", { name: "Change", hidden: true }));
  expect(screen.getByText(/Queue must be at least 1/)).toBeTruthy();
  expect(calls.some(({ method }) => method === "limits.set")).toBe(false);
  await userEvent.clear(field);
  await userEvent.type(field, "20");
  await userEvent.click(screen.getByRole("button", { name: "Change", hidden: true }));
  expect(await screen.findByText("Nothing was changed.")).toBeTruthy();
  expect(calls.find(({ method }) => method === "limits.set")?.params).toEqual({
    sessionId: "default",
    limits: { max_queue_length: 20 },
    scope: "session",
  });
});

test("only what is stated here can be taken back", async () => {
  const { calls } = stage();
  renderAt("/s/default/limits", <LimitsView />);
  await userEvent.click(await screen.findByRole("button", { name: "Change Tokens in all" }));
  expect(screen.queryByRole("button", { name: "Reset it", hidden: true })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Cancel", hidden: true }));
  await userEvent.click(screen.getByRole("button", { name: "Change Queue" }));
  await userEvent.click(screen.getByRole("button", { name: "Reset it", hidden: true }));
  expect(calls.find(({ method }) => method === "limits.set")?.params.limits).toEqual({ max_queue_length: null });
});

test("the limits of the server are offered only to whoever may change them", async () => {
  stage();
  renderAt("/s/default/limits", <LimitsView />);
  expect(screen.queryByRole("button", { name: "Server" })).toBeNull();
  await settle(() => usePage.setState({ server: { principal: "local" } as ServerInfo }));
  expect(screen.getByRole("button", { name: "Server" })).toBeTruthy();
});

test("an agent's usage leads to its limits", async () => {
  const { calls } = stage();
  const { history } = renderAt("/s/default/limits", <LimitsView />);
  await userEvent.click(await screen.findByRole("button", { name: "alice" }));
  expect(history.at(-1)).toBe("/s/default/limits?agent=alice");
  expect(calls.findLast(({ method }) => method === "limits.get")?.params.agentId).toBe("alice");
});

test("a limit that is reached shows itself at once, with its numbers", async () => {
  stage();
  renderAt("/s/default/limits", <LimitsView />);
  expect(await screen.findByText("No limit was reached.")).toBeTruthy();
  const news = reached("alice");
  await settle(() => {
    usePage.setState(({ live }) => ({ live: { ...live, seq: news.seq } }));
    tell([news]);
  });
  const list = screen.getByRole("region", { name: "Reached lately" });
  expect(within(list).getByText(/11 of 10, refused/)).toBeTruthy();
});

test("in the past the log is searched from there, and what is used now is not told", async () => {
  const entry = (seq: number) =>
    seq === 1_500 ? { ...reached("alice"), seq } : { ...note("agent.redefined", { agentId: "alice" }), seq };
  const { calls } = setStage(ALICE, {
    "limits.get": () => REPORT,
    "usage.get": () => USED,
    "session.storage": () => STORED,
    "events.list": ({ after = 0, limit = 1_000 }) => ({
      notifications: Array.from({ length: limit }, (_, index) => entry(after + index + 1)),
      lastSeq: 90_000,
    }),
  });
  usePage.setState(({ live }) => ({
    live: { ...live, seq: 90_000 },
    playhead: { world: { ...live, seq: 1_600 }, speed: 0 },
  }));
  renderAt("/s/default/limits", <LimitsView />);
  expect(await screen.findByText(/11 of 10, refused/)).toBeTruthy();
  const read = calls.filter(({ method }) => method === "events.list").map(({ params }) => Number(params.after));
  expect(Math.max(...read)).toBe(1_000);
  expect(await screen.findByRole("columnheader", { name: "Value" })).toBeTruthy();
  expect(screen.queryByRole("columnheader", { name: "Used" })).toBeNull();
});

test("how large what is is told, and pruning tells what would go before it does", async () => {
  const { calls } = stage();
  renderAt("/s/default/limits", <LimitsView />);
  const row = (await screen.findByRole("rowheader", { name: "log" })).closest("tr") as HTMLElement;
  expect(within(row).getByText("2 KiB")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Prune…" }));
  const age = screen.getByLabelText("Older than");
  await userEvent.clear(age);
  await userEvent.type(age, "soon");
  await userEvent.click(screen.getByRole("button", { name: "Look", hidden: true }));
  expect(await screen.findByText(/is no age/)).toBeTruthy();
  await userEvent.clear(age);
  await userEvent.type(age, "7d");
  await userEvent.click(screen.getByRole("button", { name: "Look", hidden: true }));
  expect(await screen.findByText(/1 threads, 2 tasks, 4 notifications/)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Erase for good", hidden: true }));
  const pruned = calls.filter(({ method }) => method === "session.prune").map(({ params }) => params);
  expect(pruned.at(-1)).toMatchObject({ olderThan: "7d", dryRun: false });
});
