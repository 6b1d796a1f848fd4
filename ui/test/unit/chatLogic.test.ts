import { beforeEach, describe, expect, test, vi } from "vitest";
import type { MessageRecord, Notification } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { EMPTY } from "../../src/projection/world";
import { tell, usePage } from "../../src/state/page";
import { loadSeen, markSeen, seenKey, seenOf, unreadIn, unreadOf, useSeen } from "../../src/state/seen";
import { NOTHING_WRITTEN } from "../../src/state/streams";
import { candidates, completed, mentionAt } from "../../src/views/chats/completion";
import { doingOf } from "../../src/views/chats/doing";
import { draftOf, keepDraft } from "../../src/views/chats/drafts";
import {
  earlier,
  heard,
  missing,
  moved,
  NOTHING_KNOWN,
  newest,
  notAsked,
  read,
  shown,
} from "../../src/views/chats/known";
import { MOST_UNPLACED, type Row, rowsOf } from "../../src/views/chats/rows";
import { streamOf } from "../../src/views/chats/transcript";
import { note } from "./stage";

function message(number: number, fields: Partial<MessageRecord> = {}): MessageRecord {
  return {
    ...{ sessionId: "default", messageId: `m${number}`, roomId: "r", number, sender: "user", text: `text ${number}` },
    ...{ mentions: [], asked: {}, taskId: null, hops: 0, cause: "", createdAt: number },
    ...{ parts: null, erasedAt: null, ...fields },
  };
}

/** Rows in short: the number of a message, or of the answers in them, a task that is still open, and who was silent. */
function brief(rows: readonly Row[]): unknown[] {
  return rows.map((row) => {
    if (row.kind === "message") return row.message.number;
    const answers = row.answers.map((answer) => answer.message?.number ?? answer.taskId);
    return row.silent.length === 0 ? answers : { answers, silent: row.silent.map(({ agentId }) => agentId) };
  });
}

const ASKED = message(1, { asked: { ann: "t1", bob: "t2" } });
const OF_ANN = message(2, { sender: "ann", taskId: "t1" });
const OF_BOB = message(3, { sender: "bob", taskId: "t2" });
const NOBODY = new Map<string, string>();

describe("the rows of a transcript", () => {
  test("those who answer the same message stand side by side, in the order in which they were asked", () => {
    const bobFirst = message(2, { sender: "bob", taskId: "t2" });
    const annSecond = message(3, { sender: "ann", taskId: "t1" });
    expect(brief(rowsOf([ASKED, bobFirst, annSecond], NOBODY))).toEqual([1, [3, 2]]);
  });

  test("a message appears where it was written", () => {
    const answering = new Map([
      ["t1", "ann"],
      ["t2", "bob"],
    ]);
    const before = rowsOf([ASKED], answering);
    const after = rowsOf([ASKED, OF_ANN], new Map([["t2", "bob"]]));
    expect([brief(before), brief(after)]).toEqual([
      [1, ["t1", "t2"]],
      [1, [2, "t2"]],
    ]);
    expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
  });

  test("what is written stays below what was said since", () => {
    const rows = rowsOf([ASKED, OF_ANN, message(3)], new Map([["t2", "bob"]]));
    expect(brief(rows)).toEqual([1, [2], 3, ["t2"]]);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(4);
  });

  test("an answer that comes after another message stands by itself, in its place", () => {
    expect(brief(rowsOf([ASKED, OF_ANN, message(3), message(4, { sender: "bob", taskId: "t2" })], NOBODY))).toEqual([
      1,
      [2],
      3,
      [4],
    ]);
  });

  test("those who neither answered nor are about to are named under the answers, or under the message", () => {
    expect(brief(rowsOf([ASKED, OF_ANN], NOBODY))).toEqual([1, { answers: [2], silent: ["bob"] }]);
    expect(brief(rowsOf([ASKED, message(2)], NOBODY))).toEqual([1, { answers: [], silent: ["ann", "bob"] }, 2]);
  });

  test("of the answers that are owed to messages that are not loaded the newest few are shown", () => {
    const owed = Array.from({ length: 3_000 }, (_, number) => [`old${number}`, "ann"] as const);
    const rows = rowsOf([ASKED], new Map([...owed, ["t1", "ann"], ["t2", "bob"]]));
    const newest = owed.slice(-MOST_UNPLACED).map(([taskId]) => taskId);
    expect(brief(rows)).toEqual([1, newest, ["t1", "t2"]]);
  });

  test("an answer whose question is not loaded is a message", () => {
    expect(brief(rowsOf([OF_BOB], NOBODY))).toEqual([3]);
  });

  test("ten thousand messages are laid out at once", () => {
    const many = Array.from({ length: 10_000 }, (_, index) => message(index + 1, { asked: { ann: `t${index}` } }));
    expect(rowsOf(many, NOBODY)).toHaveLength(20_000);
  });
});

describe("what is known of a room", () => {
  const all = read(
    NOTHING_KNOWN,
    Array.from({ length: 50 }, (_, index) => message(index + 71)),
  );

  test("the newest page is asked for first, then older ones", () => {
    expect(missing(NOTHING_KNOWN, newest(120))).toEqual({ after: 70, limit: 50 });
    expect(missing(all, newest(120))).toBeNull();
    expect(missing(all, earlier(newest(120)))).toEqual({ after: 20, limit: 50 });
    expect(earlier({ from: 21, to: 120 })).toEqual({ from: 1, to: 120 });
  });

  test("a gap at the end is filled, however large, in calls of two hundred", () => {
    expect(missing(all, { from: 71, to: 150 })).toEqual({ after: 120, limit: 30 });
    expect(missing(all, { from: 71, to: 500 })).toEqual({ after: 300, limit: 200 });
  });

  test("at an earlier time nothing later is shown", () => {
    expect(shown(all, moved(newest(120), 80)).map(({ number }) => number)).toEqual([
      71, 72, 73, 74, 75, 76, 77, 78, 79, 80,
    ]);
    expect(moved(newest(1000), 40)).toEqual({ from: 1, to: 40 });
    expect(moved({ from: 1, to: 50 }, 5000)).toEqual({ from: 4951, to: 5000 });
  });

  test("messages before a gap are not shown", () => {
    const gap = read(NOTHING_KNOWN, [message(1), message(3)]);
    expect(shown(gap, { from: 1, to: 3 }).map(({ number }) => number)).toEqual([3]);
  });

  test("a message is there as soon as it is heard of, with those who are asked", () => {
    const said = {
      roomId: "r",
      number: 1,
      messageId: "m",
      sender: "user",
      text: "hi",
      mentions: [],
      hops: 0,
      taskId: null,
    };
    const known = heard(NOTHING_KNOWN, "r", [
      note("room.message", said),
      note("room.message", { ...said, roomId: "other", number: 2 }),
      note("room.answering", { roomId: "r", number: 1, agentId: "ann", taskId: "t1" }),
    ]);
    expect([...known.messages.values()]).toMatchObject([{ number: 1, text: "hi", asked: { ann: "t1" } }]);
    expect(heard(known, "r", [note("room.message", { ...said, roomId: "other" })])).toBe(known);
  });

  test("who was mentioned and not asked is known from the message, at the hop limit with its reason", () => {
    const deep = message(9, { sender: "ann", mentions: ["bob"], hops: 5 });
    expect(notAsked(deep, 4)).toEqual({ isAtLimit: true, absent: [] });
    expect(notAsked({ ...deep, hops: 2 }, 4, { bob: "stopped" })).toEqual({
      isAtLimit: false,
      absent: [{ agentId: "bob", reason: "stopped" }],
    });
    expect(notAsked(ASKED, 4)).toEqual({ isAtLimit: false, absent: [] });
  });

  test("what continues a task is written in it", () => {
    const stream = { ...NOTHING_WRITTEN, agentId: "ann", taskId: "t1~2", stepId: "s", attempt: 1 };
    expect(streamOf(new Map([["t1~2", stream]]), "t1")).toBe(stream);
    expect(streamOf(new Map([["t10", stream]]), "t1")).toBeUndefined();
  });
});

describe("the completion of mentions", () => {
  const members = [
    { id: "writer", name: "Wanda" },
    { id: "coder", name: "Rewriter" },
  ];

  test("begins with an @ at the caret, but not in an address or behind a backslash", () => {
    expect(mentionAt("ask @wr", 7)).toEqual({ start: 4, query: "wr" });
    expect(mentionAt("@", 1)).toEqual({ start: 0, query: "" });
    expect([mentionAt("me@wr", 5), mentionAt("\\@wr", 4), mentionAt("@wr ", 4), mentionAt("@wr", 0)]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  test("offers those whose id or name begins so, then those that have it in them", () => {
    expect(candidates("wr", members).map(({ id }) => id)).toEqual(["writer", "coder"]);
    expect(candidates("WAN", members).map(({ id }) => id)).toEqual(["writer"]);
    expect(candidates("", members).map(({ id }) => id)).toEqual(["writer", "coder", "all"]);
    expect(candidates("nobody", members)).toEqual([]);
  });

  test("writes the id and one blank", () => {
    const [writer] = members as [(typeof members)[0]];
    expect(completed("ask @wr", { start: 4, query: "wr" }, writer)).toEqual({ text: "ask @writer ", caret: 12 });
    expect(completed("@w, x", { start: 0, query: "w" }, writer)).toEqual({ text: "@writer , x", caret: 8 });
    expect(completed("@w x", { start: 0, query: "w" }, writer)).toEqual({ text: "@writer x", caret: 8 });
  });
});

describe("what was seen", () => {
  const room = (roomId: string, lastNumber: number) => ({
    ...{
      roomId,
      lastNumber,
      kind: "group" as const,
      title: "",
      members: [],
      hopLimit: 4,
      lastAt: 0,
      answering: new Map(),
    },
  });

  beforeEach(() => {
    localStorage.clear();
    useSeen.setState({ seen: {} });
  });

  test("what has come since is unread, over all rooms", () => {
    const rooms = new Map([
      ["a", room("a", 5)],
      ["b", room("b", 2)],
    ]);
    markSeen("default", "a", 3);
    const seen = seenOf(useSeen.getState().seen, "default");
    expect([unreadOf(room("a", 5), seen), unreadIn(rooms, seen)]).toEqual([2, 4]);
    expect(unreadOf(room("a", 1), seen)).toBe(0);
  });

  test("is kept in the browser, by session", () => {
    markSeen("default", "a", 3);
    useSeen.setState({ seen: {} });
    loadSeen("default", []);
    loadSeen("other", []);
    const { seen } = useSeen.getState();
    expect([seenOf(seen, "default"), seenOf(seen, "other")]).toEqual([{ a: 3 }, {}]);
  });

  test("what is there when a browser first shows a session is seen, what comes later is not", () => {
    loadSeen("default", [room("a", 5)]);
    loadSeen("default", [room("a", 6), room("b", 2)]);
    const seen = seenOf(useSeen.getState().seen, "default");
    expect([unreadOf(room("a", 6), seen), unreadOf(room("b", 2), seen)]).toEqual([1, 2]);
  });

  test("is known until the page is left where the browser keeps nothing", () => {
    const setItem = () => {
      throw new Error("The store is shut.");
    };
    vi.stubGlobal("localStorage", { getItem: () => null, setItem });
    loadSeen("default", [room("a", 5)]);
    loadSeen("default", [room("a", 6)]);
    vi.unstubAllGlobals();
    expect(unreadOf(room("a", 6), seenOf(useSeen.getState().seen, "default"))).toBe(1);
  });

  test("what was said before a message of one's own is seen, wherever that was written", () => {
    const message = { roomId: "a", messageId: "m", text: "", taskId: null, mentions: [], hops: 0 };
    const said = (number: number, sender: string) => note("room.message", { ...message, number, sender });
    tell([said(3, "ann"), said(4, "user"), said(5, "ann")]);
    expect(seenOf(useSeen.getState().seen, seenKey(usePage.getState()))).toEqual({ a: 4 });
  });

  test("in another tab is seen in this one", () => {
    const newValue = JSON.stringify({ a: 7 });
    dispatchEvent(new StorageEvent("storage", { key: "whisperer.seen.default", newValue }));
    expect(seenOf(useSeen.getState().seen, "default")).toEqual({ a: 7 });
  });

  test("was not seen of another session that has got the same id", () => {
    const [first, second] = [1, 2].map((createdAt) => seenKey({ sessionId: "default", createdAt }));
    markSeen(first as string, "a", 3);
    loadSeen(second as string, []);
    expect(seenOf(useSeen.getState().seen, second as string)).toEqual({});
    expect(seenOf(useSeen.getState().seen, seenKey({ sessionId: "default", createdAt: 1 }))).toEqual({ a: 3 });
  });

  test("that cannot be read counts for nothing", () => {
    localStorage.setItem("whisperer.seen.default", '{"a": "x", "b": 2');
    loadSeen("default", []);
    localStorage.setItem("whisperer.seen.other", '{"a": "x", "b": 2}');
    loadSeen("other", []);
    const { seen } = useSeen.getState();
    expect([seenOf(seen, "default"), seenOf(seen, "other")]).toEqual([{}, { b: 2 }]);
  });
});

test("a draft is kept for its room until it is empty", () => {
  keepDraft("s", "r", { text: "half a thou", messageId: null });
  expect([draftOf("s", "r").text, draftOf("s", "other").text]).toEqual(["half a thou", ""]);
  keepDraft("s", "r", { text: "", messageId: null });
  expect(sessionStorage.length).toBe(0);
});

describe("what an agent that is to answer is at", () => {
  const about = { agentId: "ann", taskId: "t" };
  const begun = (taskId = "t") =>
    note("async.task.started", {
      agentId: "ann",
      taskId,
      threadId: taskId,
      kind: "user_prompt",
      attempt: 1,
      mailId: null,
    });
  const queued = note("async.task.queued", {
    ...{ ...about, threadId: "t", kind: "user_prompt", priority: "normal", summary: "" },
  });
  const step = (tool?: string) =>
    note("step.started", { ...about, stepId: "t.1", kind: tool ? "tool" : "model", ...(tool ? { tool } : {}) });
  const wanted = (taskId = "t") =>
    note("approval.requested", { agentId: "ann", taskId, approvalId: `${taskId}.9`, tool: "pay", digest: "d" });
  const state = (to: "paused" | "sleeping" | "stopped", more = {}) =>
    note("agent.state_changed", { agentId: "ann", from: "active", to, action: to, ...more });
  const doing = (...notes: Notification[]) => {
    const made = note("agent.created", { agentId: "ann", name: "Ann", description: "" });
    const started = note("agent.started", { agentId: "ann", reason: "" });
    const numbered = [made, started, ...notes].map((each, index) => ({ ...each, seq: index + 1 }));
    const found = doingOf(reduce(EMPTY, numbered), "ann", "t");
    return "words" in found ? found.words : found;
  };

  test("is told while it works", () => {
    expect(doing(begun(), step())).toBe("is thinking…");
    expect(doing(begun(), step("search"))).toBe("uses search…");
    expect(doing(queued)).toBe("waits for its turn…");
  });

  test("is what it waits for, a person before all else", () => {
    const about = { agentId: "ann", taskId: "t", stepId: "t.2", toAgent: "bob", mailId: "m", depth: 1, deadlineAt: 9 };
    const asks = note("switch.began", about as never);
    expect(doing(begun(), asks)).toMatchObject({ kind: "waits", wait: { kind: "reply", target: "bob" } });
    expect(doing(begun(), asks, wanted())).toMatchObject({ kind: "waits", wait: { kind: "approval" }, isOther: false });
    expect(doing(begun(), wanted(), state("paused"))).toMatchObject({ kind: "waits", wait: { kind: "approval" } });
    const locked = { name: "door", waiter: "ann", holder: "bob", stepId: "t.3", agentId: "ann", taskId: "t" };
    expect(doing(begun(), note("lock.waiting", { ...locked, deadlineAt: 9 } as never))).toMatchObject({
      wait: { kind: "lock", target: "door" },
    });
  });

  test("is what another task of it waits for, if it has no turn before that", () => {
    expect(doing(begun("other"), wanted("other"), queued)).toMatchObject({
      isOther: true,
      wait: { target: "other.9" },
    });
  });

  test("is also told of what continues its turn", () => {
    expect(doing(begun("t~1"), wanted("t~1"))).toMatchObject({ isOther: false, wait: { target: "t~1.9" } });
  });

  test("is that its model is asked again, until it is", () => {
    const error = { code: "model_error", message: "503 from the provider" };
    const retried = note("step.retried", { ...about, stepId: "t.1", attempt: 1, error, retryAt: 1_234 });
    expect(doing(begun(), step(), retried)).toEqual({ kind: "retries", at: 1_234, reason: "503 from the provider" });
    expect(doing(begun(), step(), retried, step())).toBe("is thinking…");
  });

  test("is why it does not go on", () => {
    expect(doing(begun(), state("paused"))).toBe("is paused");
    expect(doing(queued, state("paused", { pausedLimit: "max_tokens" }))).toBe("is paused at its limit max_tokens");
    expect(doing(queued, state("sleeping"))).toBe("sleeps");
    expect(doing(queued, note("agent.tools_missing", { agentId: "ann", tools: ["pay"] }))).toContain("missing: pay");
    const stopped = note("agent.stopped", { agentId: "ann", reason: "" });
    expect(doing(queued, stopped, state("stopped"))).toBe("is stopped");
    expect(doing(queued, stopped)).toBe("has not been started yet");
  });
});
