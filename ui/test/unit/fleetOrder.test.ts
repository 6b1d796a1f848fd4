import { expect, test } from "vitest";
import { LOOK_ICONS, LOOKS, lookOf } from "../../src/parts/looks";
import { reduce } from "../../src/projection/reduce";
import type { Agent, Wait } from "../../src/projection/world";
import { EMPTY } from "../../src/projection/world";
import { lately } from "../../src/views/fleet/Lately";
import {
  counted,
  filtered,
  ordered,
  sortAfter,
  sortFrom,
  sortText,
  statesFrom,
  totals,
} from "../../src/views/fleet/order";
import { standing, standingRank, waitsByAgent } from "../../src/views/fleet/standing";
import { allTicked, NO_TICKS, ticked, tickedIds } from "../../src/views/fleet/ticks";
import { note } from "./stage";

function agent(agentId: string, fields: Partial<Agent> = {}): Agent {
  const world = reduce(EMPTY, [note("agent.created", { agentId, name: "", description: "" })]);
  return { ...(world.agents.get(agentId) as Agent), state: "idle", started: true, ...fields };
}

function fleet(...agents: Agent[]): Map<string, Agent> {
  return new Map(agents.map((each) => [each.agentId, each]));
}

const WAIT: Wait = {
  kind: "lock",
  agentId: "a",
  taskId: "t",
  waiter: "a",
  target: "db",
  targets: ["db"],
  holders: ["b"],
  since: 1,
  deadlineAt: null,
};
const USAGE = { inputTokens: 1, outputTokens: 2, costUsd: null, modelCalls: 1, toolCalls: 0 };
const NOTHING = { tasks: new Map(), waits: new Map() };
const ALL = new Set<never>();

test("the filter wants each of its words in name, id, description or state", () => {
  const agents = fleet(
    agent("a1", { name: "Alice", description: "reads logs" }),
    agent("b1", { name: "Bob", state: "paused" }),
  );
  const ids = (query: string) => filtered(agents, query).map(({ agentId }) => agentId);
  expect(ids("")).toEqual(["a1", "b1"]);
  expect(ids("LOGS ali")).toEqual(["a1"]);
  expect(ids("paused")).toEqual(["b1"]);
  expect(ids("alice bob")).toEqual([]);
});

test("a filter still fits an agent after its state has changed", () => {
  const before = agent("a", { state: "idle" });
  expect(filtered(fleet(before), "paused")).toEqual([]);
  const after = { ...before, state: "paused" as const };
  expect(filtered(fleet(after), "paused")).toEqual([after]);
});

test("agents are in the order of a column, those that are alike by name", () => {
  const agents = [
    agent("c", { queueSize: 1 }),
    agent("b", { queueSize: 5 }),
    agent("a", { queueSize: 1, name: "Zoe" }),
  ];
  const by = (sort: string) => ordered(agents, { states: ALL, sort: sortFrom(sort) }, NOTHING);
  expect(by("name")).toEqual(["b", "c", "a"]);
  expect(by("-queue")).toEqual(["b", "c", "a"]);
  expect(by("queue")).toEqual(["c", "a", "b"]);
});

test("only the states that are asked for are listed", () => {
  const agents = [agent("a"), agent("b", { state: "paused" }), agent("c", { state: "stopped" })];
  expect(ordered(agents, { states: statesFrom("paused,stopped"), sort: sortFrom("") }, NOTHING)).toEqual(["b", "c"]);
  expect(counted(agents)).toMatchObject({ active: 0, paused: 1, sleeping: 0, idle: 1, stopped: 1 });
});

test("agents that retry, failed or were not started are listed, counted and found as such", () => {
  const agents = [
    agent("at-work", { state: "active" }),
    agent("retries", { state: "active", retryAt: 9 }),
    agent("rests"),
    agent("broken", { deadTasks: 2 }),
    agent("new", { started: false }),
    agent("new-and-broken", { started: false, deadTasks: 1 }),
    agent("ended", { state: "stopped", started: false, deadTasks: 1 }),
    agent("halted", { state: "paused", retryAt: 9, deadTasks: 1 }),
  ];
  expect(agents.map(lookOf)).toEqual([
    ...["active", "retrying", "idle", "failed", "not_started", "not_started", "stopped", "paused"],
  ]);
  const only = (states: string) => ordered(agents, { states: statesFrom(states), sort: sortFrom("") }, NOTHING);
  expect(only("retrying,failed")).toEqual(["broken", "retries"]);
  expect(only("active,idle")).toEqual(["at-work", "rests"]);
  expect(counted(agents)).toMatchObject({ active: 1, retrying: 1, idle: 1, failed: 1, not_started: 2 });
  expect(filtered(fleet(...agents), "not started").map(({ agentId }) => agentId)).toEqual(["new", "new-and-broken"]);
  const texts = agents.slice(1, 5).map((each) => standing(each).map(({ text, to }) => [text, ...(to ?? [])]));
  expect(texts).toEqual([[["its model,"]], [], [["2 of its tasks failed", "dead"]], [["its start"]]]);
  for (const each of LOOKS) expect(LOOK_ICONS[each]).toBeTruthy();
  expect(new Set(Object.values(LOOK_ICONS)).size).toBe(LOOKS.length); // no two by their colour alone
});

test("a click on a head sorts by it, another one the other way round", () => {
  const first = sortAfter(sortFrom("name"), "tokens");
  expect(sortText(first)).toBe("-tokens");
  expect(sortText(sortAfter(first, "tokens"))).toBe("tokens");
  expect(sortText(sortAfter(first, "name"))).toBe("name");
});

test("an order that there is not is that of names", () => {
  expect(sortFrom("-nonsense")).toEqual({ column: "name", isDown: false });
});

test("an agent without a known price does not make the sum unknown", () => {
  const priced = agent("a", { usage: { ...USAGE, costUsd: 0.5 } });
  expect(totals([priced, agent("b", { usage: USAGE })])).toMatchObject({ tokens: 6, costUsd: 0.5 });
  expect(totals([agent("b", { usage: USAGE })]).costUsd).toBeNull();
});

test("what needs a person is told before what ends by itself", () => {
  const asleep = agent("a", { state: "sleeping", sleepingUntil: 99, wakeEvents: ["alert"], reason: "night" });
  const waits = waitsByAgent(new Map([["1", WAIT]]));
  expect(standing(asleep, waits.get("a")).map(({ kind }) => kind)).toEqual(["lock", "sleep", "sleep", "halted"]);
  const limited = agent("b", { state: "paused", pausedLimit: "max_tokens" });
  expect(standing(limited)[0]?.text).toContain("max_tokens");
  expect(standingRank(limited)).toBeLessThan(standingRank(asleep, waits.get("a")));
  expect(standingRank(agent("c"))).toBeGreaterThan(standingRank(asleep));
});

test("a lock that is waited for is told with its holder", () => {
  expect(standing(agent("a"), [WAIT])[0]?.text).toBe("the lock db, with b");
});

test("Shift ticks all from the last one on, whichever way, and takes ticks away alike", () => {
  const order = ["a", "b", "c", "d"];
  const first = ticked(NO_TICKS, "c", order, false);
  const range = ticked(first, "a", order, true);
  expect([...range.ids].sort()).toEqual(["a", "b", "c"]);
  const less = ticked(range, "b", order, true);
  expect([...less.ids]).toEqual(["c"]);
});

test("all that are shown are ticked at once, those that the filter hides stay as they are", () => {
  const hidden = ticked(NO_TICKS, "z", ["z"], false);
  const all = allTicked(hidden, ["a", "b"]);
  expect(tickedIds(all, ["a", "b"], fleet(agent("a"), agent("b"), agent("z")))).toEqual(["a", "b", "z"]);
  expect([...allTicked(all, ["a", "b"]).ids]).toEqual(["z"]);
});

test("an agent that is gone is not acted on", () => {
  const ticks = ticked(NO_TICKS, "gone", ["gone"], false);
  expect(tickedIds(ticks, [], fleet(agent("a")))).toEqual([]);
});

test("how long ago is told in the largest unit", () => {
  expect([0, 59.9, 61, 7300, 200_000].map(lately)).toEqual(["now", "59 s", "1 min", "2 h", "2 d"]);
});
