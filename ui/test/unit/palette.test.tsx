import { cleanup, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { AgentStatus } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { type Agent, EMPTY } from "../../src/projection/world";
import { findEntries, type Sources } from "../../src/shell/commands";
import { Dialogs } from "../../src/shell/Dialogs";
import { closeDialog, openDialog } from "../../src/shell/dialogState";
import { type Key, pressed } from "../../src/shell/shortcuts";
import { useShortcuts } from "../../src/shell/useShortcuts";
import { usePage } from "../../src/state/page";
import { note, renderAt, setStage } from "./stage";

beforeAll(() => Promise.all([import("../../src/shell/Palette"), import("../../src/shell/SteeringDialogs")]));
beforeEach(() => {
  Object.assign(HTMLElement.prototype, { scrollIntoView() {} });
});
afterEach(() => {
  vi.restoreAllMocks();
  cleanup();
  closeDialog();
});

const CREATED = note("agent.created", { agentId: "alice", name: "Alice", description: "" });
const ALICE = reduce(EMPTY, [CREATED]).agents.get("alice") as Agent;

function agents(...fields: Partial<Agent>[]): Map<string, Agent> {
  const all = fields.map((each) => ({ ...ALICE, state: "idle" as const, started: true, ...each }));
  return new Map(all.map((agent) => [agent.agentId, agent]));
}

const SOURCES: Sources = { agents: agents({}), rooms: new Map(), sessions: [], canAct: true };
const titles = (query: string, sources = SOURCES) => findEntries(query, sources).map(({ title }) => title);

test("without a query the palette offers the places and what can be made", () => {
  expect(titles("")).toEqual(expect.arrayContaining(["Fleet", "Timeline", "New agent", "New group", "Alice"]));
  expect(titles("")).not.toContain("Pause Alice");
});

test("a verb and a part of a name do something to the agent", () => {
  expect(titles("pause ali")[0]).toBe("Pause Alice");
  expect(titles("ali pau")[0]).toBe("Pause Alice");
  expect(titles("send alice")).toContain("Send a task to Alice");
});

test("an agent by itself offers only what its state allows", () => {
  const offered = titles("alice");
  expect(offered).toEqual(expect.arrayContaining(["Alice", "Pause Alice", "Sleep Alice", "Stop Alice"]));
  expect(offered).not.toContain("Resume Alice");
  expect(offered).not.toContain("Start Alice");
});

test("in the past the palette leads to places but changes nothing", () => {
  const offered = titles("a", { ...SOURCES, canAct: false });
  expect(offered).toContain("Alice");
  expect(offered.filter((title) => /^(Pause|Stop|New|Broadcast)/.test(title))).toEqual([]);
});

test("a session can be forked from the past too, and is compared from the palette", () => {
  for (const canAct of [true, false]) {
    expect(titles("fork", { ...SOURCES, canAct })).toEqual(["Fork from here"]);
    expect(titles("compare", { ...SOURCES, canAct })).toEqual(["Compare"]);
  }
});

test("rooms and sessions are found by their titles", () => {
  const room = { roomId: "r", kind: "group" as const, title: "Standup", members: ["alice"], hopLimit: 1 };
  const rooms = new Map([["r", { ...room, lastNumber: 0, lastAt: 0, answering: new Map() }]]);
  const sessions = [{ sessionId: "s9", title: "Night shift", owner: "local", createdAt: 1, needs: [], agents: 0 }];
  expect(titles("stand", { ...SOURCES, rooms: rooms as unknown as Sources["rooms"] })).toEqual(["Standup"]);
  expect(titles("s9", { ...SOURCES, sessions })).toEqual(["Night shift"]);
});

test("of ten thousand agents the best few are shown, those that begin so first", () => {
  const many = agents(
    ...Array.from({ length: 10_000 }, (_, number) => ({ agentId: `worker-${number}`, name: "" })),
    { agentId: "x-bob", name: "" },
    { agentId: "bob", name: "" },
  );
  const found = findEntries("worker", { ...SOURCES, agents: many });
  expect(found.filter(({ group }) => group === "Agents").length).toBe(8);
  expect(found.length).toBeLessThan(40);
  expect(titles("bob", { ...SOURCES, agents: many }).slice(0, 2)).toEqual(["bob", "x-bob"]);
});

const KEY: Key = { key: "", ctrlKey: false, metaKey: false, altKey: false, isTyping: false, at: 0 };

test("g and a letter lead to a place, if the letter comes soon", () => {
  const { pending, command } = pressed(null, { ...KEY, key: "g", at: 100 });
  expect(command).toBeNull();
  expect(pressed(pending, { ...KEY, key: "l", at: 900 }).command).toEqual({ kind: "go", path: "limits" });
  expect(pressed(pending, { ...KEY, key: "l", at: 9_000 }).command).toBeNull();
  expect(pressed(pending, { ...KEY, key: "n", at: 900 }).command).toBeNull();
});

test("letters are letters while somebody types, but the palette opens everywhere", () => {
  expect(pressed(null, { ...KEY, key: "n", isTyping: true }).command).toBeNull();
  expect(pressed(null, { ...KEY, key: "n" }).command).toEqual({ kind: "new-agent" });
  expect(pressed(null, { ...KEY, key: "n", ctrlKey: true }).command).toBeNull();
  expect(pressed(null, { ...KEY, key: "k", metaKey: true, isTyping: true }).command).toEqual({ kind: "palette" });
});

function Listening() {
  useShortcuts();
  return (
    <div id="content">
      <input aria-label="Filter" data-filter />
      <Dialogs />
    </div>
  );
}

test("the keys work on the page", async () => {
  setStage([CREATED]);
  const { history } = renderAt("/s/default", <Listening />);
  await userEvent.keyboard("/");
  expect(document.activeElement).toBe(screen.getByLabelText("Filter"));
  await userEvent.keyboard("gl");
  expect((screen.getByLabelText("Filter") as HTMLInputElement).value).toBe("gl");
  (document.activeElement as HTMLElement).blur();
  await userEvent.keyboard("gl");
  expect(history.at(-1)).toBe("/s/default/limits");
  await userEvent.keyboard("?");
  expect(await screen.findByText("Choose a range of agents")).toBeTruthy();
});

test("what is chosen in the palette is done", async () => {
  const { calls } = setStage([CREATED, note("agent.started", { agentId: "alice", reason: "" })], {
    "async.pauseAgent": () => ({}) as AgentStatus,
  });
  usePage.setState(({ live }) => ({ live: { ...live, agents: agents({}) } }));
  const { history } = renderAt("/s/default", <Listening />);
  await userEvent.keyboard("{Control>}k{/Control}");
  await userEvent.type(await screen.findByRole("combobox", { hidden: true }), "pause ali{Enter}");
  expect(calls).toEqual([{ method: "async.pauseAgent", params: { sessionId: "default", agentId: "alice" } }]);
  openDialog({ kind: "palette" });
  await userEvent.type(await screen.findByRole("combobox", { hidden: true }), "timeline{Enter}");
  expect(history.at(-1)).toBe("/s/default/timeline");
});

test("an event is broadcast with what it carries, and bad JSON is told", async () => {
  const { calls } = setStage([], {
    "async.broadcastEvent": ({ event }) => {
      const record = { sessionId: "default", eventId: "e", name: event, sender: "user", cause: "", data: null };
      return { ...record, woken: 2, notified: 1, createdAt: 1, erasedAt: null };
    },
  });
  renderAt("/s/default", <Dialogs />);
  openDialog({ kind: "broadcast" });
  await userEvent.type(await screen.findByLabelText("Event"), "data_ready");
  await userEvent.type(screen.getByLabelText(/What it carries/), "nonsense");
  await userEvent.click(screen.getByRole("button", { name: "Broadcast", hidden: true }));
  expect(screen.getByText(/is not JSON/)).toBeTruthy();
  await userEvent.clear(screen.getByLabelText(/What it carries/));
  await userEvent.type(screen.getByLabelText(/What it carries/), "[[1]");
  await userEvent.click(screen.getByRole("button", { name: "Broadcast", hidden: true }));
  expect(calls.at(-1)?.params).toMatchObject({ sessionId: "default", event: "data_ready", data: [1] });
});
