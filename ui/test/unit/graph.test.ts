import { describe, expect, test } from "vitest";
import { reduce } from "../../src/projection/reduce";
import { EMPTY, type Link, type LinkKind, linkKey, type World } from "../../src/projection/world";
import { passed } from "../../src/views/graph/exchange";
import { flowEdges, flowNodes } from "../../src/views/graph/flow";
import { curve } from "../../src/views/graph/geometry";
import { arranged, extended, NODE, type Point, type Positions, resumed } from "../../src/views/graph/layout";
import { LIT_MS, MOST_LIT, relit } from "../../src/views/graph/lights";
import { keepPositions, readPositions } from "../../src/views/graph/positions";
import {
  ALL_KINDS,
  bundled,
  countsOf,
  type Filters,
  MOST_UNLINKED,
  sceneOf,
  usedLinks,
} from "../../src/views/graph/scene";
import { waitChains, waitLines } from "../../src/views/graph/waits";
import { note } from "./stage";

const EVERYTHING: Filters = { kinds: new Set(ALL_KINDS), since: 0, agents: "some", query: "" };

function link(from: string, to: string, kind: LinkKind = "mail", lastAt = 1): Link {
  return { from, to, kind, count: 1, lastAt };
}

function worldOf(agents: readonly string[], links: readonly Link[] = []): World {
  const world = reduce(
    EMPTY,
    agents.map((agentId) => note("agent.created", { agentId, name: agentId.toUpperCase(), description: "" })),
  );
  return { ...world, links: new Map(links.map((each) => [linkKey(each), each])) };
}

function overlaps(positions: Positions): string[] {
  const all = [...positions];
  const isOver = (a: Point, b: Point) => Math.abs(a.x - b.x) < NODE.width && Math.abs(a.y - b.y) < NODE.height;
  return all.flatMap(([id, a], index) =>
    all.slice(index + 1).flatMap(([other, b]) => (isOver(a, b) ? [`${id} ${other}`] : [])),
  );
}

const TEAM = ["planner", "coder1", "coder2", "coder3", "tester"];
const TEAM_LINES = [
  { from: "planner", to: "coder1" },
  { from: "planner", to: "coder2" },
  { from: "planner", to: "coder3" },
  { from: "coder1", to: "tester" },
];

describe("the layout", () => {
  test("gives each node a place of its own", () => {
    const positions = arranged(["user", ...TEAM, "alone", "lonely"], TEAM_LINES);
    expect(positions.size).toBe(8);
    expect(overlaps(positions)).toEqual([]);
  });

  test("puts who gets work to the right of who gives it", () => {
    const positions = arranged(TEAM, TEAM_LINES);
    expect(positions.get("coder2")?.x).toBeGreaterThan(positions.get("planner")?.x ?? 0);
  });

  test("draws a chain of questions as a row, whatever was answered", () => {
    const answered = ["ab", "ba", "bc", "cb"].map((pair) => ({ from: pair[0] ?? "", to: pair[1] ?? "" }));
    const positions = arranged(["a", "b", "c"], answered);
    expect(["c", "a", "b"].sort((p, q) => (positions.get(p)?.x ?? 0) - (positions.get(q)?.x ?? 0)).join("")).toBe(
      "abc",
    );
  });

  test("adding agents moves none of the others", () => {
    const before = arranged(TEAM, TEAM_LINES);
    const lines = [{ from: "helper", to: "planner" }, ...TEAM_LINES];
    const after = extended(before, ["helper", ...TEAM, "stranger"], lines);
    for (const id of TEAM) expect(after.get(id)).toEqual(before.get(id));
    expect(overlaps(after)).toEqual([]);
  });

  test("places a new agent near those it talks to", () => {
    const before = arranged(TEAM, TEAM_LINES);
    const after = extended(before, [...TEAM, "helper"], [...TEAM_LINES, { from: "tester", to: "helper" }]);
    const [tester, helper] = [after.get("tester") as Point, after.get("helper") as Point];
    expect(Math.hypot(tester.x - helper.x, tester.y - helper.y)).toBeLessThan(2 * NODE.width);
  });

  test("is the same object while nobody is new, so that nothing is drawn anew", () => {
    const before = arranged(TEAM, TEAM_LINES);
    expect(extended(before, ["coder1"], [])).toBe(before);
  });

  test("keeps what was kept unless most agents are new", () => {
    const kept = new Map([["planner", { x: 5_000, y: 5_000 }]]);
    expect(resumed(kept, ["planner", "coder1"], []).get("planner")).toEqual({ x: 5_000, y: 5_000 });
    expect(resumed(kept, TEAM, []).get("planner")).not.toEqual({ x: 5_000, y: 5_000 });
  });

  test("is no long thin strip where one agent has hundreds of others work for it", () => {
    const ids = Array.from({ length: 400 }, (_, index) => `worker${index}`);
    const lines = ids.map((to) => ({ from: "boss", to }));
    const positions = [...arranged(["boss", ...ids], lines).values()];
    const height = Math.max(...positions.map(({ y }) => y)) - Math.min(...positions.map(({ y }) => y));
    const width = Math.max(...positions.map(({ x }) => x)) - Math.min(...positions.map(({ x }) => x));
    expect(height).toBeLessThan(3 * width);
    expect(overlaps(new Map(positions.map((point, index) => [`${index}`, point])))).toEqual([]);
  });

  test("is kept by the browser, and what is broken there is left out", () => {
    keepPositions("one", new Map([["a", { x: 1.4, y: 2 }]]));
    expect(readPositions("one")).toEqual(new Map([["a", { x: 1, y: 2 }]]));
    expect(readPositions("other").size).toBe(0);
    localStorage.setItem("whisperer.graph.one", '{"a": [null, 3], "b": "no", "c": [1, 2]}');
    expect([...readPositions("one").keys()]).toEqual(["c"]);
    localStorage.setItem("whisperer.graph.one", "{");
    expect(readPositions("one").size).toBe(0);
  });
});

describe("waits", () => {
  const switched = (agentId: string, toAgent: string) =>
    note("switch.began", {
      agentId,
      toAgent,
      taskId: `task of ${agentId}`,
      stepId: `step of ${agentId}`,
      mailId: `mail of ${agentId}`,
      depth: 1,
      deadlineAt: 9_999,
    });

  test("switches that follow each other are one chain", () => {
    const world = reduce(worldOf(["a", "b", "c", "d"]), [switched("a", "b"), switched("b", "c")]);
    expect(waitChains(waitLines(world))).toEqual([["a", "b", "c"]]);
  });

  test("two that wait for the same one are two chains", () => {
    const chains = waitChains([
      { from: "a", to: "c" },
      { from: "b", to: "c" },
      { from: "c", to: "d" },
    ]);
    expect(chains).toEqual([
      ["a", "c", "d"],
      ["b", "c", "d"],
    ]);
  });

  test("a circle ends where it began", () => {
    const circle = [
      { from: "a", to: "b" },
      { from: "b", to: "a" },
    ];
    expect(waitChains(circle)).toEqual([["a", "b"]]);
  });

  test("who waits for a decision waits for the user, who waits for a lock for the one that has it now", () => {
    const world = reduce(worldOf(["a", "b", "c"]), [
      note("approval.requested", { agentId: "a", taskId: "t", approvalId: "p", tool: "deploy", digest: "x" }),
      note("lock.waiting", {
        name: "door",
        agentId: "b",
        taskId: "u",
        waiter: "b",
        stepId: "s",
        holder: "a",
        deadlineAt: 9_999,
      }),
      note("lock.acquired", { name: "door", agentId: "c", taskId: "v", holder: "c", token: 2, expiresAt: 9_999 }),
    ]);
    expect(waitLines(world).map(({ from, to }) => [from, to])).toEqual([
      ["a", "user"],
      ["b", "c"],
    ]);
  });

  test("are gone when they have ended", () => {
    const ended = { agentId: "a", toAgent: "b", taskId: "t", stepId: "step of a", mailId: "m", outcome: "replied" };
    const world = reduce(worldOf(["a", "b"]), [switched("a", "b"), note("switch.ended", ended)]);
    expect(waitLines(world)).toEqual([]);
  });
});

describe("what is drawn", () => {
  test("all kinds from one to another are one line, both directions are two", () => {
    const links = [link("a", "b", "switch"), link("a", "b", "mail"), link("b", "a")];
    expect(bundled(links)).toEqual([
      { from: "a", to: "b", kinds: ["mail", "switch"] },
      { from: "b", to: "a", kinds: ["mail"] },
    ]);
  });

  test("kinds, times and agents that are not wanted are left out", () => {
    const world = worldOf(["a", "b", "c"], [link("a", "b", "mail", 100), link("b", "c", "event", 200)]);
    expect(sceneOf(world, { ...EVERYTHING, kinds: new Set(["mail"]) }).bundles).toHaveLength(1);
    expect(sceneOf(world, { ...EVERYTHING, since: 150 }).bundles).toEqual([{ from: "b", to: "c", kinds: ["event"] }]);
    expect(sceneOf(world, { ...EVERYTHING, since: 150, agents: "linked" }).nodes).toEqual(["b", "c"]);
  });

  test("a search keeps who was found and whom they have to do with", () => {
    const world = worldOf(["ann", "bob", "eve"], [link("ann", "bob")]);
    expect(sceneOf(world, { ...EVERYTHING, query: "AN" }).nodes).toEqual(["ann", "bob"]);
  });

  test("of agents without links only some are drawn, and the rest is counted", () => {
    const world = worldOf(Array.from({ length: 500 }, (_, index) => `agent${index}`));
    const scene = sceneOf(world, EVERYTHING);
    expect(scene.nodes).toHaveLength(MOST_UNLINKED + 1);
    expect(scene.hidden).toBe(500 - MOST_UNLINKED);
    expect(sceneOf(world, { ...EVERYTHING, agents: "all" }).hidden).toBe(0);
  });

  test("a link to somebody who is not there is not drawn", () => {
    expect(sceneOf(worldOf(["a"], [link("a", "ghost")]), EVERYTHING).bundles).toEqual([]);
  });

  test("counts are one text, so that a line is drawn anew only when one of them changes", () => {
    const { links } = worldOf([], [link("a", "b"), { ...link("a", "b", "delegation"), count: 7 }]);
    expect(countsOf(links, { from: "a", to: "b" })).toBe("1,0,7,0");
  });

  test("nodes and lines that did not change are the same objects as before", () => {
    const world = worldOf(["a", "b"], [link("a", "b")]);
    const positions = arranged(["a", "b", "user"], []);
    const nobody = { node: null, edge: null };
    const nodes = flowNodes(sceneOf(world, EVERYTHING), { positions, picked: nobody, last: [] });
    const edges = flowEdges(sceneOf(world, EVERYTHING), { picked: nobody, last: [] });
    const again = sceneOf({ ...world }, EVERYTHING);
    expect(flowNodes(again, { positions, picked: nobody, last: nodes })).toBe(nodes);
    expect(flowEdges(again, { picked: nobody, last: edges })).toBe(edges);
    const chosen = flowNodes(again, { positions, picked: { node: "a", edge: null }, last: nodes });
    expect(chosen.map((node, index) => node === nodes[index])).toEqual([true, false, true]);
  });
});

describe("lights", () => {
  test("go on for links that were used, and off again", () => {
    const before = worldOf([], [link("a", "b"), link("b", "c")]).links;
    const after = new Map(before).set(linkKey(link("a", "b")), { ...link("a", "b"), count: 2 });
    const used = usedLinks(before, after);
    expect(used).toEqual([linkKey(link("a", "b"))]);
    const lit = relit(new Map(), used, 1_000);
    expect([...lit.keys()]).toEqual(used);
    expect(relit(lit, [], 1_000 + LIT_MS).size).toBe(0);
  });

  test("are never more than can be drawn smoothly", () => {
    const used = Array.from({ length: 1_000 }, (_, index) => `link ${index}`);
    expect(relit(new Map(), used, 0).size).toBe(MOST_LIT);
  });
});

test("lines of both directions do not lie on each other", () => {
  const [one, other] = [
    { x: 0, y: 0 },
    { x: 600, y: 0 },
  ];
  expect(curve(one, other, 18).label.y).toBeLessThan(0);
  expect(curve(other, one, 18).label.y).toBeGreaterThan(0);
});

test("an awaited mail is told as a switch with its reply, and nothing from after the moment that is shown", () => {
  const mail = {
    sessionId: "default",
    mailId: "m1",
    threadId: "t",
    sender: "a",
    sequence: 1,
    recipient: "b",
    subject: "Question",
    body: "Well?",
    arrival: 1,
    cause: "",
    priority: "normal" as const,
    replyTo: null,
    state: "replied" as const,
    taskId: null,
    createdAt: 10,
    readAt: 11,
    awaited: true,
    origin: null,
    erasedAt: null,
  };
  const reply = { ...mail, mailId: "m2", sender: "b", recipient: "a", body: "Yes.", replyTo: "m1", createdAt: 20 };
  const sources = { from: "a", to: "b", mails: [mail], replies: [reply], tasks: [], events: [] };
  expect(passed({ ...sources, until: 30 })).toMatchObject([{ kind: "switch", text: "Well?", reply: "Yes." }]);
  expect(passed({ ...sources, until: 15 })).toMatchObject([{ kind: "switch", reply: null }]);
  expect(passed({ ...sources, until: 5 })).toEqual([]);
});
