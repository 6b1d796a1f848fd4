import { cleanup, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, test } from "vitest";
import type { AgentState } from "../../src/client/client";
import { Lifecycle } from "../../src/parts/Lifecycle";
import { Dialogs } from "../../src/shell/Dialogs";
import { closeDialog } from "../../src/shell/dialogState";
import { usePage, useWorld } from "../../src/state/page";
import { ACTION_NAMES, refusal, type Steered } from "../../src/steer/lifecycle";
import { type SleepForm, sleepParams } from "../../src/steer/sleep";
import { note, renderAt, setStage } from "./stage";

afterEach(() => {
  cleanup();
  closeDialog();
});

const IDLE: Steered = { state: "idle", started: true, sleepingUntil: null, wakeEvents: [], runningTasks: [] };
const NO_SLEEP: SleepForm = { amount: "", unit: "minutes", until: "", events: "" };
const possible = (agent: Steered) =>
  ACTION_NAMES.filter((action) => action !== "task" && action !== "delete" && refusal(agent, action) === null);

describe("what can be done with an agent", () => {
  test("follows from its state as on the server", () => {
    expect(possible({ ...IDLE, started: false })).toEqual(["start", "stop"]);
    expect(possible(IDLE)).toEqual(["pause", "interrupt", "sleep", "stop"]);
    expect(possible({ ...IDLE, state: "active" })).toEqual(["pause", "interrupt", "sleep", "stop"]);
    expect(possible({ ...IDLE, state: "paused" })).toEqual(["resume", "stop"]);
    expect(possible({ ...IDLE, state: "sleeping" })).toEqual(["pause", "interrupt", "sleep", "wake", "stop"]);
    expect(possible({ ...IDLE, state: "stopped", started: false })).toEqual(["start"]);
  });

  test("it can be deleted in every state", () => {
    for (const state of ["idle", "active", "paused", "sleeping", "stopped"] satisfies AgentState[]) {
      expect(refusal({ ...IDLE, state }, "delete")).toBeNull();
    }
  });

  test("one that is being paused can be interrupted while something of it runs", () => {
    expect(possible({ ...IDLE, state: "paused", runningTasks: ["t"] })).toContain("interrupt");
  });

  test("one that works or is paused can be woken if it is to sleep afterwards", () => {
    for (const state of ["active", "paused"] satisfies AgentState[]) {
      expect(possible({ ...IDLE, state, wakeEvents: ["alert"] })).toContain("wake");
      expect(possible({ ...IDLE, state })).not.toContain("wake");
    }
  });

  test("a refusal says what is in the way", () => {
    expect(refusal({ ...IDLE, state: "paused" }, "sleep")).toBe("It is paused: resume it first.");
  });
});

describe("a sleep", () => {
  test("that nothing ends is refused", () => {
    expect(sleepParams(NO_SLEEP, 0)).toMatch(/never wake/);
  });

  test("has a length in seconds, whatever unit it is given in", () => {
    expect(sleepParams({ ...NO_SLEEP, amount: "1.5", unit: "hours" }, 0)).toMatchObject({ durationSeconds: 5400 });
  });

  test("takes names of events once, however they are separated", () => {
    const params = sleepParams({ ...NO_SLEEP, events: " alert, deploy\nalert " }, 0);
    expect(params).toEqual({ wakeEvents: ["alert", "deploy"] });
  });

  test.each(["0", "-3", "soon", "Infinity"])("does not last %s minutes", (amount) => {
    expect(sleepParams({ ...NO_SLEEP, amount }, 0)).toMatch(/above 0 and at most 100 years/);
  });

  test("ends in the future", () => {
    const until = "2030-01-31T09:00";
    const at = new Date(until).getTime() / 1000;
    expect(sleepParams({ ...NO_SLEEP, until }, at - 1)).toMatchObject({ until: at });
    expect(sleepParams({ ...NO_SLEEP, until }, at)).toMatch(/time in the future/);
  });
});

function Shown() {
  const agent = useWorld((world) => world.agents.get("alice"));
  if (agent === undefined) return null;
  return (
    <>
      <Lifecycle agent={agent} />
      <Dialogs />
    </>
  );
}

const BEGUN = [
  note("agent.created", { agentId: "alice", name: "Alice", description: "" }),
  note("agent.started", { agentId: "alice", reason: "" }),
  note("agent.state_changed", { agentId: "alice", from: "stopped", to: "idle", action: "start" }),
];

describe("the buttons", () => {
  test("pause asks for a reason and hands it on", async () => {
    const user = userEvent.setup();
    const { calls } = setStage(BEGUN, { "async.pauseAgent": () => ({}) as never });
    renderAt("/", <Shown />);
    await user.click(screen.getByRole("button", { name: "Pause" }));
    await user.type(await screen.findByLabelText(/Why/), "lunch");
    await user.click(screen.getAllByRole("button", { name: "Pause" }).at(-1) as HTMLElement);
    expect(calls).toEqual([
      { method: "async.pauseAgent", params: { sessionId: "default", agentId: "alice", reason: "lunch" } },
    ]);
  });

  test("stop does nothing until it is confirmed", async () => {
    const user = userEvent.setup();
    const { calls } = setStage(BEGUN, { "async.stopAgent": () => ({}) as never });
    renderAt("/", <Shown />);
    await user.click(screen.getByRole("button", { name: "Stop" }));
    await screen.findByRole("dialog");
    expect(calls).toEqual([]);
    await user.click(screen.getAllByRole("button", { name: "Stop" }).at(-1) as HTMLElement);
    expect(calls.map(({ method }) => method)).toEqual(["async.stopAgent"]);
  });

  test("a sleep that makes no sense is told in the dialog and not sent", async () => {
    const user = userEvent.setup();
    const { calls } = setStage(BEGUN);
    renderAt("/", <Shown />);
    await user.click(screen.getByRole("button", { name: "Sleep" }));
    await user.clear(await screen.findByLabelText("For"));
    await user.click(screen.getAllByRole("button", { name: "Sleep" }).at(-1) as HTMLElement);
    expect(screen.getByRole("alert").textContent).toMatch(/never wake/);
    expect(calls).toEqual([]);
  });

  test("one that the state does not allow is off and says why", () => {
    setStage(BEGUN);
    renderAt("/", <Shown />);
    const resume = screen.getByRole("button", { name: "Resume" });
    expect(resume).toHaveProperty("disabled", true);
    expect(resume.title).toBe("It is not paused.");
  });

  test("in the past all are off", () => {
    setStage(BEGUN);
    usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } }));
    renderAt("/", <Shown />);
    expect(screen.getAllByRole("button").every((button) => (button as HTMLButtonElement).disabled)).toBe(true);
  });
});
