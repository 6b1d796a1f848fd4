import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test } from "vitest";
import type { Comparison, Notification, Parting, Snapshot, Spent } from "../../src/client/client";
import { RpcError } from "../../src/client/client";
import { usePage } from "../../src/state/page";
import { backToLive } from "../../src/state/playhead";
import CompareView from "../../src/views/compare/CompareView";
import { MOST_MARKED, markedOf } from "../../src/views/compare/differences";
import { atEnd, joined, lastOf, read, written } from "../../src/views/compare/scale";
import { renderAt, setStage } from "./stage";

beforeEach(() => backToLive());

const SPENT: Spent = { requests: 2, inputTokens: 100, outputTokens: 20, costUsd: null, seconds: 4 };
const SAME: Comparison = {
  isSame: true,
  first: null,
  partings: [],
  sameAnswers: 2,
  otherAnswers: 0,
  callsOnlyInA: [],
  callsOnlyInB: [],
  mailsOnlyInA: [],
  mailsOnlyInB: [],
  more: 0,
  spent: { agentId: null, a: SPENT, b: SPENT },
  spentByAgent: [],
};

function parting(agentId: string, fields: Partial<Parting> = {}): Parting {
  const texts = { textA: "It is red.", textB: "It is blue.", diff: "- It is red.\n+ It is blue." };
  return { agentId, key: `1>${agentId}/1`, kind: "answer", seqA: 4, seqB: 4, ...texts, ...fields };
}

/** An entry of a log in which alice works all the time: a task begins with each odd one, and ends with each even one. */
function entry(seq: number, begunAt: number): Notification {
  const task = { agentId: "alice", taskId: `t${Math.ceil(seq / 2)}`, threadId: "t", kind: "user_prompt" } as const;
  const params = seq % 2 === 1 ? { ...task, attempt: 1, mailId: null } : { ...task, result: {} };
  const name = seq % 2 === 1 ? "async.task.started" : "async.task.completed";
  return { seq, sessionId: "", name, cause: "", at: begunAt + seq, params } as unknown as Notification;
}

const BEGUN: Readonly<Record<string, number>> = { default: 1_000, other: 50_000 };

/** Two sessions with logs of this length, and what the server says of them. */
function two(comparison: Comparison | (() => Comparison), { entries = 6 }: { entries?: number } = {}) {
  let length = entries;
  let wasRead = 0;
  const snapshot = (sessionId: string) =>
    ({
      ...{ lastSeq: length, firstSeq: 1, at: (BEGUN[sessionId] ?? 0) + length, clockOffsetSeconds: 0 },
      ...{ agents: [], tasks: [], waits: [], rooms: [], links: [], inbox: [], locks: [], approvals: [] },
      ...{ questions: [], schedules: [], deadTasks: 0, deadMails: 0 },
    }) as Snapshot;
  const stage = setStage([], {
    "session.compare": () => (typeof comparison === "function" ? comparison() : comparison),
    "session.snapshot": ({ sessionId }) => snapshot(sessionId),
    "events.list": ({ sessionId, after = 0, limit = 1_000 }) => {
      const last = Math.min(after + limit, length);
      const notifications = [];
      for (let seq = after + 1; seq <= last; seq += 1) notifications.push(entry(seq, BEGUN[sessionId] ?? 0));
      wasRead += notifications.length;
      return { notifications, lastSeq: length };
    },
  });
  const summary = { owner: "local", createdAt: 1, needs: [], agents: 1 };
  usePage.setState({
    sessions: [
      { ...summary, sessionId: "default", title: "" },
      { ...summary, sessionId: "other", title: "The other one" },
    ],
  });
  return { stage, wasRead: () => wasRead, grow: (by: number) => (length += by) };
}

const DIFFERENT: Comparison = {
  ...SAME,
  isSame: false,
  first: parting("alice"),
  partings: [parting("bob", { kind: "only_in_b", seqA: null, seqB: 6, textA: "" }), parting("alice")],
  otherAnswers: 1,
  callsOnlyInB: [{ agentId: "bob", text: 'pay {"amount": 5}', seq: 6 }],
  mailsOnlyInA: [{ agentId: "alice", text: "to user: Red", seq: 4 }],
  spent: { agentId: null, a: SPENT, b: { ...SPENT, requests: 3, outputTokens: 18, costUsd: 0.5 } },
};

test("two sessions that went the same way are said to be the same", async () => {
  two(SAME);
  renderAt("/s/default/compare/other", <CompareView />);
  expect(await screen.findByText(/^They are the same/)).toBeTruthy();
  expect(screen.queryByText("First difference of each agent")).toBeNull();
});

test("the first difference of each agent is shown with both texts, the first of all at the top", async () => {
  two(DIFFERENT);
  renderAt("/s/default/compare/other", <CompareView />);
  expect(await screen.findByText(/First of all alice answers differently/)).toBeTruthy();
  const [alice, bob] = screen.getAllByRole("article") as [HTMLElement, HTMLElement];
  expect(within(alice).getByText("It is red.")).toBeTruthy();
  expect(within(alice).getByText("It is blue.")).toBeTruthy();
  expect(within(alice).getByText("first of all")).toBeTruthy();
  const ways = within(alice).getAllByRole("link", { name: "Entry 4" });
  expect(ways.map((way) => way.getAttribute("href"))).toEqual([
    "/s/default/log?at=4&entry=4",
    "/s/other/log?at=4&entry=4",
  ]);
  expect(within(bob).getByText("There is no such step.")).toBeTruthy();
});

test("what each has used stands side by side, and a cost that is not known is no number", async () => {
  two(DIFFERENT);
  renderAt("/s/default/compare/other", <CompareView />);
  const [table] = await screen.findAllByRole("table");
  const rows = within(table as HTMLElement)
    .getAllByRole("row")
    .map(({ textContent }) => textContent);
  expect(rows.slice(1)).toEqual(["A210020–4 s", "B310018$0.50004 s", "B − A+10−2–0"]);
});

test("calls and mails that only one has lead to their entries", async () => {
  two({ ...DIFFERENT, more: 7 });
  renderAt("/s/default/compare/other", <CompareView />);
  const alone = await screen.findByRole("region", { name: "Only in one of the two" });
  expect(within(alone).getByRole("link", { name: "bob" }).getAttribute("href")).toBe("/s/other/log?at=6&entry=6");
  expect(within(alone).getByText("to user: Red", { exact: false })).toBeTruthy();
  expect(within(alone).getByText(/^7 more are not listed/)).toBeTruthy();
});

test("both timelines count from their beginnings on one scale, and the first difference is marked in both", async () => {
  two(DIFFERENT);
  const shown = renderAt("/s/default/compare/other", <CompareView />);
  await waitFor(() => expect(shown.container.querySelectorAll(".timeline-mark line")).toHaveLength(2));
  const [a, b] = [...shown.container.querySelectorAll(".timeline-box")] as [HTMLElement, HTMLElement];
  const ticks = (box: HTMLElement) => [...box.querySelectorAll(".timeline-axis text")].map((tick) => tick.textContent);
  expect(ticks(a)).toEqual(ticks(b));
  expect(ticks(a)).toContain("0 s");
  const place = (box: HTMLElement) => box.querySelector(".timeline-mark line")?.getAttribute("x1");
  expect(place(a)).toBe(place(b));
  const flag = within(b).getByRole("link", { name: "First difference of all: alice answers differently, entry 4" });
  fireEvent.click(flag);
  expect(shown.history.at(-1)).toBe("/s/other/log?at=4&entry=4");
});

test("zooming one moves both, and an address with a range and a bar shows them again", async () => {
  two(DIFFERENT);
  const shown = renderAt("/s/default/compare/other?bar=b~task:t2&range=0.000~4.000", <CompareView />);
  const details = await screen.findByRole("complementary", { name: "Details" });
  expect(within(details).getByRole("link", { name: "That session at this moment" }).getAttribute("href")).toBe(
    "/s/other/timeline?at=3&bar=task%3At2",
  );
  const [, box] = shown.container.querySelectorAll(".timeline-box");
  fireEvent.keyDown(box as Element, { key: "ArrowRight" });
  await waitFor(() => expect(shown.history.at(-1)).toContain("range=0.400%7E4.400"));
});

test("lined up at the first difference it is at 0 in both", async () => {
  two({ ...DIFFERENT, first: parting("alice", { seqB: 2 }), partings: [parting("alice", { seqB: 2 })] });
  const shown = renderAt("/s/default/compare/other", <CompareView />);
  const lines = () =>
    [...shown.container.querySelectorAll(".timeline-mark line")].map((line) => line.getAttribute("x1"));
  await waitFor(() => expect(new Set(lines()).size).toBe(2));
  await userEvent.selectOptions(screen.getByLabelText("Lined up"), "difference");
  await waitFor(() => expect(new Set(lines()).size).toBe(1));
  expect(shown.history.at(-1)).toContain("align=difference");
});

test("of logs with 160,000 entries only what is around the first difference is read, and that is said", async () => {
  const far = parting("alice", { seqA: 120_000, seqB: 120_004 });
  const { wasRead } = two({ ...DIFFERENT, first: far, partings: [far] }, { entries: 160_000 });
  const shown = renderAt("/s/default/compare/other", <CompareView />);
  await waitFor(() => expect(shown.container.querySelectorAll(".timeline-mark line")).toHaveLength(2));
  await screen.findByText(/These logs are long: only what is around the first difference was read\./);
  await screen.findByText(/What happened before it began is not drawn\./);
  await waitFor(() => expect(shown.container.querySelectorAll("[data-kind=task]").length).toBeGreaterThan(2));
  expect(wasRead()).toBeLessThan(20_000);
});

test("that the session has gone on is told, and both are read again when somebody wants it", async () => {
  let comparison = SAME;
  const { stage, grow } = two(() => comparison);
  usePage.setState(({ live }) => ({ live: { ...live, seq: 6 } }));
  renderAt("/s/default/compare/other", <CompareView />);
  await screen.findByText(/^They are the same/);
  await screen.findByText(/^As of/);
  expect(screen.queryByText(/has gone on since/)).toBeNull();
  comparison = DIFFERENT;
  grow(2);
  usePage.setState(({ live }) => ({ live: { ...live, seq: 8 } }));
  expect(await screen.findByText(/A has gone on since, by 2 entries/)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Compare again" }));
  expect(await screen.findByText(/^They are not the same/)).toBeTruthy();
  await waitFor(() => expect(screen.queryByText(/has gone on since/)).toBeNull());
  expect(stage.calls.filter(({ method }) => method === "session.compare")).toHaveLength(2);
});

test("why two sessions cannot be compared is told, and their timelines are shown all the same", async () => {
  const refusal = new RpcError(-32000, "The log of session 'other' was pruned.", { code: "invalid_recording" });
  const { stage } = two(() => {
    throw refusal;
  });
  const shown = renderAt("/s/default/compare/other", <CompareView />);
  expect(await screen.findByText("The log of session 'other' was pruned.")).toBeTruthy();
  await waitFor(() => expect(shown.container.querySelectorAll(".timeline-box")).toHaveLength(2));
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(stage.calls.filter(({ method }) => method === "session.compare")).toHaveLength(2));
});

test("without another session one is chosen, or made by a fork; the session itself is no other", async () => {
  const { stage } = two(SAME);
  const shown = renderAt("/s/default/compare/default", <CompareView />);
  expect(screen.getByText("Choose the session to compare with.")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Fork this session" })).toBeTruthy();
  expect(stage.calls).toEqual([]);
  await userEvent.selectOptions(screen.getByLabelText("The other session"), "other");
  expect(shown.history.at(-1)).toBe("/s/default/compare/other");
  expect(await screen.findByText(/^They are the same/)).toBeTruthy();
  expect(screen.getByRole("link", { name: "Swap" }).getAttribute("href")).toBe("/s/other/compare/default");
});

test("of a team of hundreds the first of all and some others are marked", () => {
  const partings = Array.from({ length: 300 }, (_, index) => parting(`agent${index}`));
  const first = partings[200] as Parting;
  const marked = markedOf({ ...DIFFERENT, first, partings });
  expect(marked).toHaveLength(MOST_MARKED);
  expect(marked[0]).toBe(first);
  expect(new Set(marked.map(({ agentId }) => agentId)).size).toBe(MOST_MARKED);
});

test("a shared range is written and read, also one before the beginning", () => {
  const range = { from: -3.5, to: 10.25 };
  expect(read(written(range))).toEqual(range);
  for (const text of ["", "1~1", "5~1", "a~b", "1", "0~1e9"]) expect(read(text)).toBeNull();
});

test("ranges are joined, and moved to the end of the whole", () => {
  expect(joined({ from: 1, to: 3 }, { from: 0, to: 2 })).toEqual({ from: 0, to: 3 });
  expect(joined(null, { from: 0, to: 2 })).toEqual({ from: 0, to: 2 });
  expect(joined(null, null)).toBeNull();
  expect(atEnd({ from: 2, to: 4 }, { from: 0, to: 10 })).toEqual({ from: 8, to: 10 });
  expect(lastOf({ from: 0, to: 10 })).toEqual({ from: 9, to: 10 });
});
