import { cleanup, screen, act as settle, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AgentState, AgentStatus, TaskRecord } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { Dialogs } from "../../src/shell/Dialogs";
import { closeDialog } from "../../src/shell/dialogState";
import { useNotices } from "../../src/state/actions";
import { usePage } from "../../src/state/page";
import { EMPTY_FORM, freeId, idProblem, ownConfig } from "../../src/steer/definition";
import FleetView from "../../src/views/fleet/FleetView";
import { note, renderAt, setStage } from "./stage";

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600); // only rows in sight exist
});

afterEach(() => {
  vi.restoreAllMocks();
  cleanup();
  closeDialog();
  useNotices.setState({ notices: [] });
});

function made(agentId: string, to: AgentState = "idle", description = "") {
  return [
    note("agent.created", { agentId, name: agentId, description }),
    note("agent.started", { agentId, reason: "" }),
    note("agent.state_changed", { agentId, from: "stopped", to, action: "start" }),
  ];
}

const STATUS = {} as AgentStatus;
const view = (
  <>
    <FleetView />
    <Dialogs />
  </>
);
const names = () => screen.getAllByRole("rowheader").map((cell) => within(cell).getByRole("link").textContent);

test("a session without agents says what one is and how it is made", async () => {
  setStage([]);
  renderAt("/s/default", view);
  expect(screen.getByText("No agents yet.")).toBeTruthy();
  const make = screen.getByRole("button", { name: "Create the first agent" }) as HTMLButtonElement;
  expect(make.disabled).toBe(false);
  settle(() => usePage.setState({ connection: "lost" }));
  expect(screen.getByText("No agents yet.")).toBeTruthy();
  expect(make.disabled).toBe(true);
});

test("filter, state and order are read from the address and written into it", async () => {
  setStage([...made("carol"), ...made("bob", "paused"), ...made("alice", "paused")]);
  const { history } = renderAt("/s/default?state=paused&sort=-name", view);
  expect(names()).toEqual(["bob", "alice"]);
  await userEvent.click(screen.getByRole("button", { name: /^Agent/ }));
  expect(names()).toEqual(["alice", "bob"]);
  expect(screen.getByRole("columnheader", { name: /^Agent/ }).getAttribute("aria-sort")).toBe("ascending");
  await userEvent.click(screen.getByRole("button", { name: /^all/ }));
  await userEvent.type(screen.getByRole("searchbox"), "car");
  expect(names()).toEqual(["carol"]);
  expect(history.at(-1)).toBe("/s/default?q=car");
});

test("a row tells the running task, how far it is and what it waits for", async () => {
  const taskId = "t1";
  const task = { agentId: "alice", taskId, threadId: taskId, kind: "user_prompt" as const };
  setStage([
    ...made("alice", "active"),
    note("async.task.queued", { ...task, priority: "normal", summary: "Sort the post" }),
    note("async.task.started", { ...task, attempt: 1, mailId: null }),
    note("async.task.progress", { agentId: "alice", taskId, percent: 40, note: "half way" }),
    note("switch.began", { ...task, stepId: "s", toAgent: "bob", mailId: "m", depth: 1, deadlineAt: 9e9 }),
  ]);
  renderAt("/s/default", view);
  const row = screen.getAllByRole("row").at(-1) as HTMLElement;
  for (const text of ["user prompt", "Sort the post", "40 %", "half way", "an answer of bob"])
    expect(within(row).getByText(text)).toBeTruthy();
});

test("a row follows its agent", async () => {
  setStage(made("alice"));
  renderAt("/s/default", view);
  const changed = note("agent.state_changed", { agentId: "alice", from: "idle", to: "paused", action: "pause" });
  await settle(() => usePage.setState(({ live }) => ({ live: reduce(live, [changed]) })));
  expect(within(screen.getAllByRole("row").at(-1) as HTMLElement).getByText("paused")).toBeTruthy();
});

test("what is done to several agents is told with those that did not follow, and why", async () => {
  const { calls } = setStage([...made("alice"), ...made("bob"), ...made("carol")], {
    "async.pauseAgent": ({ agentId }) => {
      if (agentId === "bob") throw new Error("Bob does not want to.");
      return STATUS;
    },
  });
  renderAt("/s/default", view);
  await userEvent.click(screen.getByLabelText("Choose all agents that are shown"));
  await userEvent.click(screen.getByLabelText("Choose carol"));
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(calls.map(({ params }) => params.agentId)).toEqual(["alice", "bob"]);
  expect(await screen.findByText("Bob does not want to.")).toBeTruthy();
  expect(screen.getByText(/Paused 1 agent\./)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Try these again", hidden: true }));
  expect(calls.map(({ params }) => params.agentId)).toEqual(["alice", "bob", "bob"]);
});

test("agents are stopped only after a question", async () => {
  const { calls } = setStage(made("alice"), { "async.stopAgent": () => STATUS });
  renderAt("/s/default", view);
  await userEvent.click(screen.getByLabelText("Choose alice"));
  await userEvent.click(screen.getByRole("button", { name: "Stop…" }));
  expect(await screen.findByText("Stop alice?")).toBeTruthy();
  expect(calls).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Stop", hidden: true }));
  expect(calls).toEqual([
    { method: "async.stopAgent", params: { sessionId: "default", agentId: "alice", reason: "" } },
  ]);
  expect(useNotices.getState().notices.at(-1)?.text).toBe("Stopped alice.");
});

test("a task that is sent again after a lost connection is still given once", async () => {
  let isLost = true;
  const { calls } = setStage(made("alice"), {
    "async.sendTask": () => {
      if (isLost) throw new Error("The connection was lost.");
      return {} as TaskRecord;
    },
  });
  renderAt("/s/default", view);
  await userEvent.click(screen.getByLabelText("Choose alice"));
  await userEvent.click(screen.getByRole("button", { name: "Send a task…" }));
  await userEvent.type(await screen.findByLabelText("What is to be done"), "Hello");
  await userEvent.click(screen.getByRole("button", { name: "Send", hidden: true }));
  isLost = false;
  await userEvent.click(screen.getByRole("button", { name: "Send", hidden: true }));
  const [first, second] = calls.map(({ params }) => params);
  expect(first).toMatchObject({ agentId: "alice", prompt: "Hello", priority: "normal" });
  expect(first?.taskId).toMatch(/^[0-9a-f]{32}\.alice$/);
  expect(second).toEqual(first);
});

test("an action that fits none of the ticked agents is not offered", async () => {
  setStage(made("alice"));
  renderAt("/s/default", view);
  await userEvent.click(screen.getByLabelText("Choose alice"));
  expect((screen.getByRole("button", { name: "Resume" }) as HTMLButtonElement).disabled).toBe(true);
  expect((screen.getByRole("button", { name: "Pause" }) as HTMLButtonElement).disabled).toBe(false);
});

test("in the past nothing can be ticked for an action, and no agent made", async () => {
  setStage(made("alice"));
  usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } }));
  renderAt("/s/default", view);
  expect((screen.getByRole("button", { name: /New agent/ }) as HTMLButtonElement).disabled).toBe(true);
  await userEvent.click(screen.getByLabelText("Actions for alice"));
  const items = await screen.findAllByRole("menuitem", { hidden: true });
  expect(items.filter((item) => !(item as HTMLButtonElement).disabled).map((item) => item.textContent?.trim())).toEqual(
    ["Open"],
  );
});

test("what is ticked stays ticked while the connection is away for a moment", async () => {
  setStage([...made("alice"), ...made("bob")]);
  renderAt("/s/default", view);
  await userEvent.click(screen.getByLabelText("Choose alice"));
  settle(() => usePage.setState({ connection: "lost" }));
  settle(() => usePage.setState({ connection: "open" }));
  expect((screen.getByLabelText("Choose alice") as HTMLInputElement).checked).toBe(true);
});

test("the keyboard moves through the rows, ticks and opens", async () => {
  setStage([...made("alice"), ...made("bob")]);
  const { history } = renderAt("/s/default", view);
  (screen.getAllByRole("row")[1] as HTMLElement).focus();
  await userEvent.keyboard("{ArrowDown} {Enter}");
  expect((screen.getByLabelText("Choose bob") as HTMLInputElement).checked).toBe(true);
  expect(history.at(-1)).toBe("/s/default/agents/bob");
});

test("an agent is made of a template, with an id that is free", async () => {
  const template = { name: "coder", description: "Writes code", kind: "built-in" as const, path: "", error: null };
  const broken = { ...template, name: "bad", error: "It has no prompt." };
  const { calls } = setStage(made("coder"), {
    "template.list": () => ({ templates: [template, broken] }),
    "async.createAgent": () => STATUS,
  });
  renderAt("/s/default", view);
  await userEvent.click(screen.getByRole("button", { name: /New agent/ }));
  await userEvent.click(await screen.findByText("Writes code"));
  expect(screen.queryByText("bad")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
  expect(calls.at(-1)).toEqual({
    method: "async.createAgent",
    params: { sessionId: "default", agentId: "coder-2", autoStart: true, template: "coder" },
  });
});

test("why an agent cannot be made is told in the form", async () => {
  setStage([], {
    "template.list": () => ({ templates: [] }),
    "async.createAgent": () => {
      throw new Error("There is no model of that name.");
    },
  });
  renderAt("/s/default", view);
  await userEvent.click(screen.getByRole("button", { name: /New agent/ }));
  await userEvent.click(await screen.findByText("From my own definition"));
  await userEvent.type(screen.getByLabelText("Model"), "nonsense");
  await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
  expect(screen.getByText(/Give the agent an id/)).toBeTruthy();
  await userEvent.type(screen.getByLabelText("Id"), "alice");
  await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
  expect(await screen.findByText("There is no model of that name.")).toBeTruthy();
});

test("an id is checked before the server is asked", () => {
  const taken = new Map([["alice", 1]]);
  expect(idProblem("alice", taken)).toContain("already");
  expect(idProblem("a b", taken)).toContain("letters");
  expect(idProblem("bob-1", taken)).toBe("");
  expect(freeId("Alice the First", new Map())).toBe("Alice_the_First");
  expect(freeId("ünï 🎈 <b>", new Map())).toBe("uni_b");
  expect(freeId("🎈 日本", new Map())).toBe("");
});

test("a definition has only what was filled in, and names tools only if they are chosen", () => {
  expect(ownConfig({ ...EMPTY_FORM, prompt: " Be kind. " })).toEqual({ prompt: "Be kind." });
  const chosen = { ...EMPTY_FORM, isToolsChosen: true, tools: new Set(["read_file"]), otherTools: "a, read_file,b" };
  expect(ownConfig(chosen)).toEqual({ tools: ["read_file", "a", "b"] });
});
