import { expect, test } from "vitest";
import type { Notification } from "../../src/client/client";
import { Keyframes } from "../../src/history/keyframes";
import { LogPages, PAGE } from "../../src/history/pages";
import { advance } from "../../src/history/playing";
import { findNear, matcher, searchBack } from "../../src/history/search";
import { reduce } from "../../src/projection/reduce";
import { EMPTY } from "../../src/projection/world";

/** A log in which agents are made and work; the notification `seq` happened at 1,000 + seq. */
function logOf(length: number, agents = 10): Notification[] {
  return Array.from({ length }, (_, index) => {
    const seq = index + 1;
    const agentId = `agent${index % agents}`;
    const head = { seq, sessionId: "default", cause: `task:t${agentId}`, at: 1_000 + seq };
    if (seq <= agents) return { ...head, name: "agent.created", params: { agentId, name: agentId, description: "" } };
    const taskId = `t${Math.floor(index / agents / 4)}-${agentId}`;
    const stage = Math.floor(index / agents) % 4;
    const step = { agentId, taskId, stepId: `${taskId}.1`, kind: "model" };
    if (stage === 0) {
      const params = { agentId, taskId, threadId: "t", kind: "user_prompt", attempt: 1, mailId: null };
      return { ...head, name: "async.task.started", params };
    }
    if (stage === 1) return { ...head, name: "step.started", params: step };
    if (stage === 2) return { ...head, name: "step.finished", params: { ...step, state: "done" } };
    return { ...head, name: "async.task.completed", params: { agentId, taskId, result: { final: "done" } } };
  }) as unknown as Notification[];
}

/** A server that counts what it is asked. */
function serving(log: Notification[], most = 1_000) {
  const asked: number[] = [];
  const ask = async (after: number, limit: number) => {
    asked.push(after);
    return { notifications: log.slice(after, after + Math.min(limit, most)), lastSeq: log.length };
  };
  return { ask, asked };
}

test("a page is asked for once, however many want it at the same time", async () => {
  const { ask, asked } = serving(logOf(2_500));
  const pages = new LogPages(ask);
  const [first, second] = await Promise.all([pages.page(1), pages.page(1)]);
  expect(first).toBe(second);
  expect(first?.[0]?.seq).toBe(PAGE + 1);
  expect(await pages.page(1)).toBe(first);
  expect(asked).toEqual([1_000]);
});

test("a page that the server hands out in parts is put together", async () => {
  const { ask, asked } = serving(logOf(1_500), 400);
  const notes = await new LogPages(ask).page(0);
  expect(notes.map((note) => note.seq)).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
  expect(asked).toEqual([0, 400, 800]);
});

test("what comes live fills the newest page, and following the log asks for nothing", async () => {
  const log = logOf(2_300);
  const { ask, asked } = serving(log.slice(0, 1_800));
  const pages = new LogPages(ask);
  await pages.page(1);
  pages.add(log.slice(1_800, 2_300));
  expect((await pages.page(1)).length).toBe(1_000);
  expect((await pages.page(2)).at(-1)?.seq).toBe(2_300);
  expect(asked).toEqual([1_000]);
});

test("what came live but does not join on is read when it is asked for", async () => {
  const log = logOf(1_700);
  const { ask, asked } = serving(log);
  const pages = new LogPages(ask);
  pages.add(log.slice(1_500));
  expect(pages.note(1_600)).toBeUndefined();
  expect((await pages.page(1)).length).toBe(700);
  expect(pages.note(1_600)?.seq).toBe(1_600);
  expect(asked).toEqual([1_000]);
});

test("pieces of answers, which have no number, are no part of the log", () => {
  const pages = new LogPages(serving([]).ask);
  pages.add([{ ...(logOf(1)[0] as Notification), seq: 0 }]);
  expect(pages.lastSeq).toBe(0);
});

test("the pages that were not used for longest are let go", async () => {
  const { ask, asked } = serving(logOf(5_000));
  const pages = new LogPages(ask, { pages: 2 });
  await pages.page(0);
  await pages.page(1);
  await pages.page(0);
  await pages.page(2);
  expect([0, 1, 2].map((number) => pages.peek(number) !== undefined)).toEqual([true, false, true]);
  await pages.page(1);
  expect(asked).toEqual([0, 1_000, 2_000, 1_000]);
});

test("pages with much in them are let go sooner", async () => {
  const { ask } = serving(logOf(5_000));
  const pages = new LogPages(ask, { weight: 1_200_000 });
  for (const number of [0, 1, 2, 3]) await pages.page(number);
  const kept = [0, 1, 2, 3].filter((number) => pages.peek(number) !== undefined);
  expect(kept.length).toBeLessThan(4);
  expect(kept.at(-1)).toBe(3);
});

test("a page whose request failed is asked for again", async () => {
  let isBroken = true;
  const { ask } = serving(logOf(10));
  const pages = new LogPages((after, limit) => (isBroken ? Promise.reject(new Error("gone")) : ask(after, limit)));
  await expect(pages.page(0)).rejects.toThrow("gone");
  isBroken = false;
  expect((await pages.page(0)).length).toBe(10);
});

test("the notification of a time is found with a few questions", async () => {
  const { ask, asked } = serving(logOf(64_000));
  const pages = new LogPages(ask);
  pages.reaches(64_000);
  expect(await pages.seqAt(1_000 + 43_210.5)).toBe(43_210);
  expect(asked.length).toBeLessThan(10);
  expect(await pages.seqAt(999)).toBe(0);
  expect(await pages.seqAt(1e9)).toBe(64_000);
});

test("the world of any moment is the one that a straight fold gives", async () => {
  const log = logOf(9_500);
  const keyframes = new Keyframes(new LogPages(serving(log).ask), { interval: 2_000 });
  for (const seq of [9_431, 1, 4_000, 3_999, 4_001, 0, 9_500]) {
    expect(await keyframes.worldAt(seq)).toEqual(reduce(EMPTY, log.slice(0, seq)));
  }
});

test("once the log was read, a moment needs no more than the pages since the world kept before it", async () => {
  const { ask, asked } = serving(logOf(20_000));
  const keyframes = new Keyframes(new LogPages(ask, { pages: 1 }), { interval: 2_000 });
  await keyframes.worldAt(20_000);
  const before = asked.length;
  expect(keyframes.nearest(13_500).seq).toBe(12_000);
  expect((await keyframes.worldAt(13_500)).seq).toBe(13_500);
  expect(asked.slice(before)).toEqual([12_000, 13_000]);
});

test("kept worlds thin out when they hold too much", async () => {
  const log = logOf(40_000);
  const keyframes = new Keyframes(new LogPages(serving(log).ask), { interval: 2_000, entries: 100 });
  await keyframes.worldAt(40_000);
  expect(keyframes.size).toBeLessThan(14);
  expect(await keyframes.worldAt(31_234)).toEqual(reduce(EMPTY, log.slice(0, 31_234)));
});

test("a world at hand is used where it is nearer than those that are kept", async () => {
  const log = logOf(1_900);
  const { ask, asked } = serving(log);
  const keyframes = new Keyframes(new LogPages(ask));
  const from = reduce(EMPTY, log.slice(0, 1_500));
  expect(await keyframes.worldAt(1_510, { from })).toEqual(reduce(EMPTY, log.slice(0, 1_510)));
  expect(asked).toEqual([1_000]);
});

test("the way to a moment is told, and can be broken off", async () => {
  const keyframes = new Keyframes(new LogPages(serving(logOf(8_000)).ask));
  const told: number[] = [];
  const stop = new AbortController();
  const onProgress = (part: number) => {
    told.push(part);
    if (told.length === 3) stop.abort();
  };
  await expect(keyframes.worldAt(8_000, { signal: stop.signal, onProgress })).rejects.toThrow();
  expect(told).toEqual([0.125, 0.25, 0.375]);
});

test("a moment after the end of the log does not make it search for ever", async () => {
  const keyframes = new Keyframes(new LogPages(serving(logOf(50)).ask));
  await expect(keyframes.worldAt(80)).rejects.toThrow("The log ends at 50.");
});

test("playing passes what happened in the time that went by", () => {
  const ahead = logOf(100).slice(10, 40);
  const { passed, clock } = advance(ahead, 1_010, { seconds: 5, longestGap: 10 });
  expect(passed).toBe(5);
  expect(clock).toBe(1_015);
});

test("playing does not wait through a night in which nothing happened", () => {
  const [first, second] = logOf(2) as [Notification, Notification];
  const ahead = [first, { ...second, at: 50_000 }];
  const one = advance(ahead, 1_000, { seconds: 2, longestGap: 10 });
  expect(one.passed).toBe(1);
  const two = advance(ahead.slice(1), one.clock, { seconds: 5, longestGap: 10 });
  expect(two).toEqual({ passed: 0, clock: 49_995 });
  expect(advance(ahead.slice(1), two.clock, { seconds: 5, longestGap: 10 }).passed).toBe(1);
});

test("a search goes backwards page by page, and tells how far it is", async () => {
  const pages = new LogPages(serving(logOf(2_500)).ask);
  const matches = matcher({ agent: "agent3", name: "async.task.completed", text: "" });
  const seen: [number, number][] = [];
  const signal = new AbortController().signal;
  for await (const { notes, searchedTo } of searchBack(pages, matches ?? (() => false), { from: 2_500, signal })) {
    expect(notes.every((note) => note.name === "async.task.completed")).toBe(true);
    seen.push([notes.length, searchedTo]);
  }
  expect(seen).toEqual([
    [12, 2_000],
    [25, 1_000],
    [25, 0],
  ]);
});

test("text is searched in everything that a notification carries", () => {
  const [created] = logOf(1) as [Notification];
  const found = (text: string) => matcher({ agent: "", name: "", text })?.(created);
  expect([found("AGENT0 was created"), found("task:tagent0"), found("agent.created"), found("nowhere")]).toEqual([
    true,
    true,
    true,
    false,
  ]);
  expect(matcher({ agent: "", name: "", text: " " })).toBeNull();
});

test("the next and the last of the same agent are found", async () => {
  const pages = new LogPages(serving(logOf(3_000)).ask);
  pages.reaches(3_000);
  const isThird = matcher({ agent: "agent3", name: "", text: "" }) ?? (() => false);
  expect(await findNear(pages, isThird, { from: 994, direction: 1 })).toBe(1_004);
  expect(await findNear(pages, isThird, { from: 1_004, direction: -1 })).toBe(994);
  expect(await findNear(pages, isThird, { from: 2_994, direction: 1 })).toBeNull();
});
