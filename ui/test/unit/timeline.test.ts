import { expect, test } from "vitest";
import type { Notification, NotificationName, Notifications } from "../../src/client/client";
import type { History } from "../../src/history/history";
import { Keyframes } from "../../src/history/keyframes";
import { LogPages } from "../../src/history/pages";
import { reduce } from "../../src/projection/reduce";
import { EMPTY } from "../../src/projection/world";
import { chartFrom, extended } from "../../src/views/timeline/bars";
import { type Chart, NO_CHART } from "../../src/views/timeline/chart";
import { moved, read, ticks, written, zoomed } from "../../src/views/timeline/range";
import { ChartReader, type Read } from "../../src/views/timeline/reader";
import { chainOf, lanesOf, shapesOf, shapesWithin, workOf } from "../../src/views/timeline/shapes";

/** Writes a log: each notification is a second after the one before, the first at 1,001. */
class Script {
  readonly notes: Notification[] = [];

  add<N extends NotificationName>(name: N, params: Notifications[N], cause = ""): this {
    const seq = this.notes.length + 1;
    this.notes.push({ seq, sessionId: "default", name, cause, at: 1_000 + seq, params } as Notification);
    return this;
  }

  agent(agentId: string): this {
    return this.add("agent.created", { agentId, name: agentId, description: "" });
  }

  queued(
    agentId: string,
    taskId: string,
    cause = "",
    kind: "user_prompt" | "delegated_task" | "wake_up" = "user_prompt",
  ) {
    const task = { agentId, taskId, threadId: taskId, kind, priority: "normal", summary: `Do ${taskId}` } as const;
    return this.add("async.task.queued", task, cause);
  }

  started(agentId: string, taskId: string, { mailId = null as string | null, attempt = 1 } = {}): this {
    const kind = mailId === null ? "user_prompt" : "mailbox_message";
    return this.add("async.task.started", { agentId, taskId, threadId: taskId, kind, attempt, mailId });
  }

  completed(agentId: string, taskId: string): this {
    return this.add("async.task.completed", {
      agentId,
      taskId,
      result: { analysis: "", commentary: "", final: "", output: null },
    });
  }

  step(agentId: string, taskId: string, number: number, tool?: string): this {
    const step = { agentId, taskId, stepId: `${taskId}.${number}`, kind: tool ? "tool" : "model" } as const;
    return this.add("step.started", tool ? { ...step, tool } : step);
  }

  stepDone(agentId: string, taskId: string, number: number, tool?: string): this {
    const step = { agentId, taskId, stepId: `${taskId}.${number}`, state: "done" } as const;
    return this.add("step.finished", tool ? { ...step, kind: "tool", tool } : { ...step, kind: "model" });
  }

  mail(mailId: string, sender: string, recipient: string, cause: string, replyTo: string | null = null): this {
    const mail = { mailId, threadId: "t", sender, sequence: 1, recipient, subject: `About ${mailId}`, replyTo };
    return this.add("mail.sent", { ...mail, priority: "normal" }, cause);
  }
}

function charted(script: Script): Chart {
  return extended(NO_CHART, script.notes);
}

test("a task is a bar, and its steps are bars within it", () => {
  const script = new Script().agent("alice").queued("alice", "t").started("alice", "t").step("alice", "t", 1);
  const chart = charted(script.stepDone("alice", "t", 1).completed("alice", "t"));
  const loop = chart.bars.get("task:t");
  expect(loop).toMatchObject({ kind: "task", label: "Do t", start: 1_003, end: 1_006, outcome: "completed" });
  expect(chart.bars.get("step:t.1")).toMatchObject({ kind: "model", parent: "task:t", start: 1_004, end: 1_005 });
});

test("a call so short that only its end is told of is a bar without length", () => {
  const chart = charted(new Script().started("alice", "t").stepDone("alice", "t", 1, "list_agents"));
  expect(chart.bars.get("step:t.1")).toMatchObject({ kind: "tool", label: "list_agents", start: 1_002, end: 1_002 });
});

test("tasks that run at once stand in different rows, and a row is used again", () => {
  const script = new Script().started("alice", "a").started("alice", "b").completed("alice", "a").started("alice", "c");
  const { bars } = charted(script);
  expect(["a", "b", "c"].map((id) => bars.get(`task:${id}`)?.slot)).toEqual([0, 1, 0]);
  expect(lanesOf(charted(script), new Map(), { filter: "", withQuiet: false })[0]?.rows).toBe(2);
});

test("calls that run at once in a task stand beside each other", () => {
  const script = new Script().started("alice", "t").step("alice", "t", 1, "read").step("alice", "t", 2, "write");
  expect(charted(script).bars.get("step:t.2")?.slot).toBe(1);
});

test("the end of a task ends all that goes on in it", () => {
  const script = new Script().started("alice", "t").step("alice", "t", 1);
  script.add("async.task.cancelled", { agentId: "alice", taskId: "t", reason: "" });
  const chart = charted(script);
  expect(chart.bars.get("step:t.1")).toMatchObject({ end: 1_003, outcome: "cancelled" });
  expect(chart.open.size).toBe(0);
  expect(chart.inside.size).toBe(0);
});

test("waits for replies, locks, people and resources are bars", () => {
  const of = { agentId: "alice", taskId: "t" };
  const lock = { ...of, name: "db", waiter: "alice", stepId: "t.2" };
  const turn = { ...of, stepId: "t.4", resources: ["file:a"], access: "write" };
  const script = new Script().started("alice", "t");
  script.add("switch.began", { ...of, stepId: "t.1", toAgent: "bob", mailId: "m", depth: 1, deadlineAt: 0 });
  script.add("switch.ended", { ...of, stepId: "t.1", toAgent: "bob", mailId: "m", outcome: "replied" });
  script.add("lock.waiting", { ...lock, holder: "bob", deadlineAt: 0 });
  script.add("lock.wait_ended", { ...lock, outcome: "acquired" });
  script.add("approval.requested", { ...of, approvalId: "t.3", tool: "shell", digest: "" });
  script.add("approval.refused", { ...of, approvalId: "t.3", tool: "shell", decidedBy: "me", reason: "" });
  script.add("resource.waiting", { ...turn, holders: ["bob"] });
  script.add("resource.granted", { ...turn, waitedSeconds: 1 });
  const waits = [...charted(script).bars.values()].filter((bar) => bar.kind === "wait");
  expect(waits.map(({ label, start, end, outcome }) => [label, start, end, outcome])).toEqual([
    ["waits for an answer of bob", 1_002, 1_003, "replied"],
    ["waits for the lock db", 1_004, 1_005, "acquired"],
    ["waits for your approval: shell", 1_006, 1_007, "refused"],
    ["waits for its turn at file:a", 1_008, 1_009, "granted"],
  ]);
});

test("sleeps and pauses are bars from the change into the state to the change out of it", () => {
  const script = new Script().agent("alice");
  script.add("agent.state_changed", { agentId: "alice", from: "idle", to: "sleeping", action: "sleep" });
  script.add("agent.state_changed", { agentId: "alice", from: "sleeping", to: "paused", action: "pause" });
  const rests = [...charted(script).bars.values()].map(({ kind, start, end }) => [kind, start, end]);
  expect(rests).toEqual([
    ["sleep", 1_002, 1_003],
    ["pause", 1_003, null],
  ]);
});

test("a loop that crashed and began again is two bars, with an arrow between them", () => {
  const script = new Script().started("alice", "t").step("alice", "t", 1).started("alice", "t", { attempt: 2 });
  const chart = charted(script);
  expect(chart.bars.get("task:t")).toMatchObject({ end: 1_003, outcome: "interrupted" });
  expect(chart.bars.get("step:t.1")?.end).toBe(1_003);
  expect(chart.arrows.get("start:task:t#2")).toMatchObject({ from: "task:t", to: "task:t#2" });
});

/** alice switches to bob, bob delegates to carol and answers. */
function chain(): Script {
  const of = { agentId: "alice", taskId: "a", stepId: "a.1", toAgent: "bob", mailId: "m" };
  const script = new Script().started("alice", "a").mail("m", "alice", "bob", "task:a");
  script.add("switch.began", { ...of, depth: 1, deadlineAt: 0 }).started("bob", "b", { mailId: "m" });
  script.queued("carol", "c", "task:b", "delegated_task").started("carol", "c").started("dan", "d");
  script.mail("r", "bob", "alice", "task:b", "m").completed("bob", "b");
  return script.add("switch.ended", { ...of, outcome: "replied", replyId: "r" });
}

test("arrows lead from a switch to the task of it, from a delegation to the other's, and back with the reply", () => {
  const arrows = [...charted(chain()).arrows.values()].map(({ kind, from, to }) => [kind, from, to]);
  expect(arrows).toEqual([
    ["switch", "task:a", "task:b"],
    ["delegation", "task:b", "task:c"],
    ["reply", "task:b", "task:a"],
  ]);
});

test("the chain of a bar is what led to it and what it led to", () => {
  const chart = charted(chain());
  expect(chainOf(chart, "task:c").size).toBe(2);
  expect(chainOf(chart, "task:d").size).toBe(0);
  expect(chainOf(chart, "wait:a.1")).toEqual(chainOf(chart, "task:a"));
});

test("an event of an agent leads to the task that it woke, and so does what is said in a room", () => {
  const script = new Script().started("alice", "a").queued("bob", "b", "task:a", "wake_up").started("bob", "b");
  const said = { roomId: "r", number: 3, messageId: "x", sender: "alice", text: "Bob?", mentions: ["dan"], hops: 1 };
  script.add("room.message", { ...said, taskId: "a" });
  script.add("room.answering", { agentId: "dan", taskId: "d", roomId: "r", number: 3 }).started("dan", "d");
  const arrows = [...charted(script).arrows.values()].map(({ kind, from, to }) => [kind, from, to]);
  expect(arrows).toEqual([
    ["event", "task:a", "task:b"],
    ["room", "task:a", "task:d"],
  ]);
});

test("a chart that is made bit by bit is the one that is made at once", () => {
  const { notes } = chain();
  let chart = NO_CHART;
  for (const note of notes) chart = extended(chart, [note]);
  expect(chart).toEqual(extended(NO_CHART, notes));
  expect(extended(chart, notes)).toEqual(chart);
});

test("a chart that begins later knows what went on by then", () => {
  const script = new Script().agent("alice").queued("alice", "t").started("alice", "t").step("alice", "t", 1, "read");
  script.agent("bob").add("agent.state_changed", { agentId: "bob", from: "idle", to: "sleeping", action: "sleep" });
  const chart = chartFrom(reduce(EMPTY, script.notes));
  expect(chart.bars.get("task:t")).toMatchObject({ label: "Do t", start: 1_003, end: null });
  expect(chart.bars.get("step:t.1")).toMatchObject({ label: "read", parent: "task:t", start: 1_004 });
  expect(chart.bars.get("sleep:bob@0")).toMatchObject({ isCut: true, end: null });
  const later = extended(chart, script.stepDone("alice", "t", 1, "read").completed("alice", "t").notes);
  expect(later.bars.get("step:t.1")?.end).toBe(1_007);
  expect(later.bars.get("task:t")?.end).toBe(1_008);
});

test("agents that did nothing have a lane only if it is asked for, and lanes can be filtered", () => {
  const agents = new Map(["alice", "bob", "carol"].map((name) => [name, { name }]));
  const chart = charted(new Script().started("bob", "b").started("alice", "a"));
  const names = (filter: string, withQuiet: boolean) =>
    lanesOf(chart, agents, { filter, withQuiet }).map((lane) => lane.agentId);
  expect(names("", false)).toEqual(["alice", "bob"]);
  expect(names("", true)).toEqual(["alice", "bob", "carol"]);
  expect(names("OB", false)).toEqual(["bob"]);
});

/** An agent with very many short tasks. */
function busy(tasks: number): Chart {
  const script = new Script();
  for (let index = 0; index < tasks; index += 1) {
    script.started("alice", `t${index}`).step("alice", `t${index}`, 1).completed("alice", `t${index}`);
  }
  return charted(script);
}

test("what is narrower than a few pixels becomes one shape with its neighbours", () => {
  const [lane] = lanesOf(busy(2_000), new Map(), { filter: "", withQuiet: false });
  if (lane === undefined) throw new Error("There is a lane.");
  const view = { from: 1_000, to: 7_000, width: 600, now: 7_000 };
  const shapes = shapesOf(lane, view, 2);
  expect(shapes.length).toBeLessThan(20);
  expect(shapes.reduce((sum, shape) => sum + shape.count, 0)).toBe(4_000);
  const near = shapesOf(lane, { ...view, to: 1_060 }, 2);
  expect(near.every((shape) => shape.bar !== null)).toBe(true);
});

test("there are never more shapes than may be drawn", () => {
  const lanes = lanesOf(busy(5_000), new Map(), { filter: "", withQuiet: false });
  const view = { from: 1_000, to: 16_000, width: 60_000, now: 16_000 };
  const shapes = shapesWithin(lanes, view, 1_000);
  expect(shapes.get("alice")?.length).toBeLessThanOrEqual(1_000);
});

test("waits are drawn over the calls that they are in", () => {
  const script = chain().add("step.started", { agentId: "alice", taskId: "a", stepId: "a.9", kind: "model" });
  const [lane] = lanesOf(charted(script), new Map(), { filter: "alice", withQuiet: false });
  if (lane === undefined) throw new Error("There is a lane.");
  const kinds = shapesOf(lane, { from: 1_000, to: 1_020, width: 800, now: 1_020 }, 2).map(({ kind }) => kind);
  expect(kinds).toEqual(["task", "model", "wait"]);
});

test("all that agents did fits into the range that is suggested", () => {
  expect(workOf(charted(new Script().agent("alice")))).toBeNull();
  const { from, to } = workOf(charted(chain())) ?? { from: 0, to: 0 };
  expect(from).toBeLessThan(1_001);
  expect(to).toBeGreaterThan(1_010);
});

test("zooming keeps the time under the pointer, and moving keeps the length", () => {
  const range = { from: 100, to: 200 };
  const near = zoomed(range, 0.5, 0.25);
  expect(near).toEqual({ from: 112.5, to: 162.5 });
  expect(moved(range, 0.1)).toEqual({ from: 110, to: 210 });
  expect(read(written(range))).toEqual(range);
  expect([read("x"), read("5-1"), read("")]).toEqual([null, null, null]);
});

test("the marks of the axis are round times, and few", () => {
  const marks = ticks({ from: 1_000_003, to: 1_000_063 }, 8);
  expect(marks.length).toBeLessThanOrEqual(8);
  expect(marks.every(({ at }) => at % 10 === 0)).toBe(true);
  expect(marks[0]?.label).toMatch(/^\d\d:\d\d:\d0$/);
  expect(ticks({ from: 1_000_003, to: 1_000_003.05 }, 8)[0]?.label).toMatch(/\.\d{3}$/);
});

test("the axis can count from a moment, before it and after it", () => {
  const labels = (from: number, to: number) => ticks({ from, to }, 8, 1_000).map(({ label }) => label);
  expect(labels(995, 1_010)).toEqual(["−4 s", "−2 s", "0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
  expect(labels(999.9, 1_000.9)).toEqual(["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]);
  expect(labels(1_000, 1_600)[1]).toBe("2 min");
});

/** A log of many tasks, served by pages. */
function served(tasks: number) {
  const script = new Script();
  for (let index = 0; index < tasks; index += 1) script.started("alice", `t${index}`).completed("alice", `t${index}`);
  const asked: number[] = [];
  let read = 0;
  const pages = new LogPages(async (after, limit) => {
    asked.push(after);
    const notifications = script.notes.slice(after, after + limit);
    read += notifications.length;
    return { notifications, lastSeq: script.notes.length };
  });
  pages.reaches(script.notes.length);
  const history: History = { pages, keyframes: new Keyframes(pages) };
  return { history, asked, notes: script.notes, read: () => read };
}

async function reading(history: History, ...ranges: { from: number; to: number }[]): Promise<Read> {
  let last: Read | undefined;
  for (const range of ranges) last = await covering(history, range);
  return last as Read;
}

function covering(history: History, range: { from: number; to: number }, furthest?: number): Promise<Read> {
  return new Promise((resolve) => {
    const tell = (told: Read) => (told.covered === range || told.problem) && resolve(told);
    new ChartReader(history, tell, furthest).want(range);
  });
}

test("what went on before a range is left out if it would take too many entries to know it", async () => {
  const range = { from: 1_000 + 150_500, to: 1_000 + 150_900 };
  const far = served(80_000);
  const cut = await covering(far.history, range, 10_000);
  expect(cut.isCut).toBe(true);
  expect([...cut.chart.bars.values()].every(({ seq }) => seq > 150_000 && seq <= 151_000)).toBe(true);
  expect(cut.chart.bars.size).toBe(500);
  expect(far.read()).toBeLessThan(1_100);
  const near = served(8_000);
  const whole = await covering(near.history, { from: 1_000 + 9_500, to: 1_000 + 9_900 }, 10_000);
  expect(whole.isCut).toBe(false);
});

test("only the pages of the range are read, once what was before it is known", async () => {
  const { history, asked } = served(5_000);
  await history.keyframes.worldAt(10_000);
  const before = asked.length;
  const { chart, isShort } = await reading(history, { from: 1_000 + 8_100, to: 1_000 + 8_900 });
  expect(isShort).toBe(false);
  expect(chart.seq).toBe(9_000);
  expect(chart.bars.size).toBe(500);
  expect(asked.length).toBe(before);
});

test("a range with too much in it is read in its later part, and that is said", async () => {
  const { history } = served(20_000);
  const { chart, isShort } = await reading(history, { from: 0, to: 1e9 });
  expect(isShort).toBe(true);
  expect(chart.seq).toBe(40_000);
  expect(chart.bars.size).toBe(15_000);
});

test("a chart that cannot be read says why", async () => {
  const pages = new LogPages(() => Promise.reject(new Error("The server is away.")));
  pages.reaches(10);
  const { problem } = await reading({ pages, keyframes: new Keyframes(pages) }, { from: 0, to: 1e9 });
  expect(problem?.message).toBe("The server is away.");
});
