import { describe, expect, test } from "vitest";
import type { MailRecord, StepRecord, TaskRecord } from "../../src/client/client";
import { mailAsOf, stepAsOf, taskAsOf } from "../../src/history/asOf";
import { hindrances } from "../../src/parts/hindrances";
import { waitedFor } from "../../src/parts/waited";
import { reduce } from "../../src/projection/reduce";
import { EMPTY, type World } from "../../src/projection/world";
import { changesTask, changesTasks } from "../../src/state/changes";
import { ofThread } from "../../src/views/agent/Conversation";
import { prettyJson } from "../../src/views/agent/Folded";
import { limitBars } from "../../src/views/agent/limitBars";
import { entryKey, isShown, longer } from "../../src/views/agent/logTail";
import { NO_TASK, taskParams } from "../../src/views/agent/taskForm";
import { taskRows, titleOf } from "../../src/views/agent/taskRows";
import { branches, changesTree } from "../../src/views/agent/tree";
import { aMail, aStep, aTask } from "./records";
import { note } from "./stage";

const LIVE = Number.POSITIVE_INFINITY;
const queued = (taskId: string, agentId = "alice") =>
  note("async.task.queued", {
    agentId,
    taskId,
    threadId: taskId,
    kind: "user_prompt",
    priority: "normal",
    summary: "Do it",
  });

describe("what was asked of the server, as it was at an earlier time", () => {
  const task = aTask("t", { createdAt: 10, startedAt: 20, finishedAt: 30, state: "failed" });

  test("a task that came later is not there", () => {
    expect(taskAsOf(task, 9)).toBeNull();
  });

  test("a task has neither its end nor its beginning before they happened", () => {
    expect(taskAsOf(task, 15)).toMatchObject({ state: "queued", startedAt: null, finishedAt: null });
    expect(taskAsOf(task, 25)).toMatchObject({ state: "running", startedAt: 20, result: null, error: null });
    expect(taskAsOf(task, 30)).toBe(task);
  });

  test("while the page is live everything stays as the server told it", () => {
    const running = aTask("t", { state: "running", progressPercent: 40 });
    expect(taskAsOf(running, LIVE)).toBe(running);
  });

  test("a step has no answer before it came", () => {
    const step: StepRecord = aStep({ startedAt: 10, finishedAt: 20 });
    expect(stepAsOf(step, 9)).toBeNull();
    expect(stepAsOf(step, 15)).toMatchObject({ state: "started", answer: null, finishedAt: null });
    expect(stepAsOf(step, 20)).toBe(step);
  });

  test("a mail is unread before it was read", () => {
    const mail: MailRecord = aMail("m", { createdAt: 10, readAt: 20, state: "replied", taskId: "t" });
    expect(mailAsOf(mail, 9)).toBeNull();
    expect(mailAsOf(mail, 15)).toMatchObject({ state: "queued", taskId: null });
    expect(mailAsOf(mail, LIVE)).toBe(mail);
    expect(mailAsOf({ ...mail, state: "archived" }, 25)).toMatchObject({ state: "read", taskId: mail.taskId });
    expect(mailAsOf({ ...mail, state: "dead", readAt: null }, 25)).toMatchObject({ state: "queued" });
  });
});

describe("the list of tasks", () => {
  const listing = { agentId: "alice", state: "", at: LIVE, limit: 50 };

  test("has what the log told before the server lists it, the newest first", () => {
    const world = reduce(EMPTY, [queued("new"), queued("other", "bob")]);
    const rows = taskRows([aTask("old", { createdAt: 5 })], world.tasks, listing);
    expect(rows.map(({ taskId, title }) => [taskId, title])).toEqual([
      ["new", "Do it"],
      ["old", "Do something"],
    ]);
  });

  test("takes the progress of a running task from the log", () => {
    const started = { threadId: "t", kind: "user_prompt", attempt: 1, mailId: null } as const;
    const world: World = reduce(EMPTY, [
      queued("t"),
      note("async.task.started", { agentId: "alice", taskId: "t", ...started }),
      note("async.task.progress", { agentId: "alice", taskId: "t", percent: 60, note: "most of it" }),
    ]);
    const [row] = taskRows([aTask("t", { state: "queued" })], world.tasks, listing);
    expect(row).toMatchObject({ state: "running", progressPercent: 60, progressNote: "most of it" });
  });

  test("keeps only the state that was chosen, and no more than the limit", () => {
    const tasks = [aTask("a", { state: "failed" }), aTask("b"), aTask("c")];
    expect(taskRows(tasks, new Map(), { ...listing, state: "failed" }).map(({ taskId }) => taskId)).toEqual(["a"]);
    expect(taskRows(tasks, new Map(), { ...listing, limit: 2 })).toHaveLength(2);
  });

  test("names a mail by its sender and subject, anything else by its first line", () => {
    expect(titleOf("mailbox_message", "You have mail.\nFrom: bob\nSubject: Part A\n\nbody")).toBe("bob: Part A");
    expect(titleOf("mailbox_message", "Something else")).toBe("Something else");
    expect(titleOf("user_prompt", "\n\n  Write it.\nSoon")).toBe("Write it.");
    expect(titleOf("delegated_task", "bob delegates this task to you.\n\nCount.")).toBe("Count.");
    const marked = 'bob delegates this task to you.\n\n<said by="bob" id="418302">\nCount.\n</said id="418302">';
    expect(titleOf("delegated_task", marked)).toBe("Count.");
  });

  test("is asked anew for what changes tasks of this agent, not for pieces of answers", () => {
    const delta = { taskId: "t", stepId: "t.1", attempt: 1, channel: "final", text: "x" } as const;
    expect(changesTasks(queued("t"), "alice")).toBe(true);
    expect(changesTasks(queued("t", "bob"), "alice")).toBe(false);
    expect(changesTasks(note("async.task.delta", { agentId: "alice", ...delta }), "alice")).toBe(false);
    expect(changesTask(note("async.task.delta", { agentId: "alice", ...delta }), "t")).toBe(false);
    expect(changesTask(queued("t"), "t")).toBe(true);
  });
});

describe("the tree of a task", () => {
  const tree = [
    aTask("root"),
    aTask("one", { parentId: "root", agentId: "bob" }),
    aTask("two", { parentId: "root" }),
    aTask("below", { parentId: "one" }),
  ];

  test("has each task below the one that caused it", () => {
    expect(branches(tree).map(({ task, depth }) => `${"-".repeat(depth)}${task.taskId}`)).toEqual([
      "root",
      "-one",
      "--below",
      "-two",
    ]);
  });

  test("shows a task whose parent is unknown at the top", () => {
    expect(branches([aTask("lost", { parentId: "gone" })])).toMatchObject([{ depth: 0 }]);
  });

  test("is asked anew when one of its tasks ends, and for new tasks while it is not at its end", () => {
    const cancelled = (taskId: string) => note("async.task.cancelled", { agentId: "bob", taskId, reason: "" });
    expect(changesTree(cancelled("one"), tree)).toBe(true);
    expect(changesTree(cancelled("stranger"), tree)).toBe(false);
    expect(changesTree(queued("new"), tree)).toBe(false);
    expect(changesTree(queued("new"), [aTask("root", { state: "running" })])).toBe(true);
  });
});

describe("a thread", () => {
  test("has its own tasks in the order in which they came", () => {
    const tasks: TaskRecord[] = [
      aTask("b", { threadId: "talk", arrival: 2 }),
      aTask("x", { threadId: "else", arrival: 3 }),
      aTask("a", { threadId: "talk", arrival: 1 }),
    ];
    expect(ofThread(tasks, "talk", LIVE).map(({ taskId }) => taskId)).toEqual(["a", "b"]);
  });
});

describe("a task that is typed in", () => {
  const form = { ...NO_TASK, prompt: "Count." };

  test("is sent with what was given only", () => {
    expect(taskParams(form)).toEqual({
      prompt: "Count.",
      priority: "normal",
      threadId: null,
      timeoutSeconds: null,
      budget: null,
    });
    expect(taskParams({ ...form, threadId: " talk ", timeoutSeconds: "90", maxCostUsd: "0,5" })).toMatchObject({
      threadId: "talk",
      timeoutSeconds: 90,
      budget: { maxTokens: null, maxCostUsd: 0.5 },
    });
  });

  test.each([
    [{ prompt: " " }, /what it is to do/],
    [{ timeoutSeconds: "soon" }, /number of seconds/],
    [{ timeoutSeconds: "1e99" }, /at most 100 years/],
    [{ maxTokens: "1.5" }, /whole number/],
    [{ maxCostUsd: "-1" }, /number of dollars/],
  ])("with %o is refused with a sentence", (wrong, sentence) => {
    expect(taskParams({ ...form, ...wrong })).toMatch(sentence);
  });
});

describe("what keeps an agent from working", () => {
  const created = note("agent.created", { agentId: "alice", name: "Alice", description: "" });

  test("names whom it waits for once, whether the log or the status tells", () => {
    const world = reduce(EMPTY, [
      created,
      note("agent.started", { agentId: "alice", reason: "" }),
      note("switch.began", {
        agentId: "alice",
        taskId: "t",
        stepId: "t.2",
        toAgent: "bob",
        mailId: "m",
        depth: 1,
        deadlineAt: 5_000,
      }),
    ]);
    const alice = { ...must(world.agents.get("alice")), waitingFor: ["bob", "lock:door", "approval:t.3"] };
    const found = hindrances(alice, [...world.waits.values()]).flatMap((each) => ("wait" in each ? [each.wait] : []));
    expect(found.map(waitedFor)).toEqual(["your approval", "the lock door", "an answer of bob"]);
    expect(found.map(({ since, deadlineAt }) => [since !== null, deadlineAt])).toEqual([
      [false, null],
      [false, null],
      [true, 5_000],
    ]);
  });

  test("tells until when and for which events it sleeps", () => {
    const world = reduce(EMPTY, [
      created,
      note("agent.state_changed", {
        agentId: "alice",
        from: "idle",
        to: "sleeping",
        action: "sleep",
        sleepingUntil: 9_000,
        wakeEvents: ["alert"],
      }),
    ]);
    const alice = must(world.agents.get("alice"));
    expect(hindrances(alice, [])).toContainEqual({ kind: "sleep", isAsleep: true, until: 9_000, events: ["alert"] });
  });

  test("tells the limit that it is paused for and the tools that it lacks", () => {
    const alice = { ...must(reduce(EMPTY, [created]).agents.get("alice")), pausedLimit: "max_tokens_per_agent" };
    expect(hindrances({ ...alice, missingTools: ["combine"] }, [])).toEqual(
      expect.arrayContaining([
        { kind: "limit", limit: "max_tokens_per_agent" },
        { kind: "tools", tools: ["combine"] },
      ]),
    );
  });
});

describe("limits", () => {
  test("are told in the unit of their name, the fullest first", () => {
    const common = { source: "default", reached: 0 } as const;
    const bars = limitBars([
      { name: "max_same_calls", value: 5, used: null, ...common },
      { name: "max_context_bytes", value: 2048, used: 1024, ...common },
      { name: "max_cost_usd_per_agent", value: 0, used: 0.5, ...common },
      { name: "max_task_seconds", value: 60, used: 90, ...common },
    ]);
    expect(bars.map(({ used, most, percent }) => [used, most, percent])).toEqual([
      ["1 min 30 s", "1 min", 100],
      ["1 KiB", "2 KiB", 50],
      ["$0.5000", null, null],
      [null, "5", null],
    ]);
  });
});

describe("the log", () => {
  const entry = { time: "1970-01-01T00:00:10.000Z", level: "warning", event: "agent.tools_missing", seq: 3 };

  test("keeps the newest entries when there are too many", () => {
    expect(longer([{ seq: 1 }, { seq: 2 }], [{ seq: 3 }], 2)).toEqual([{ seq: 2 }, { seq: 3 }]);
  });

  test("shows what is old enough, bad enough and has the text in it", () => {
    const all = { at: LIVE, level: "debug", text: "" };
    expect(isShown(entry, all)).toBe(true);
    expect(isShown(entry, { ...all, at: 9 })).toBe(false);
    expect(isShown(entry, { ...all, level: "error" })).toBe(false);
    expect(isShown(entry, { ...all, text: "TOOLS" })).toBe(true);
    expect(isShown(entry, { ...all, text: "mail" })).toBe(false);
  });

  test("names an entry by its number or, without one, by its time", () => {
    expect(entryKey(entry)).toBe("3");
    expect(entryKey({ time: "noon" })).toBe("noon");
  });
});

test("arguments that are no JSON are shown as they are", () => {
  expect(prettyJson('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(prettyJson("{oops")).toBe("{oops");
});

function must<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("It is not there.");
  return value;
}
