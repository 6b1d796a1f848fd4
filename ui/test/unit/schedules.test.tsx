import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { usePage } from "../../src/state/page";
import { NewSchedule } from "../../src/views/schedules/NewSchedule";
import SchedulesView from "../../src/views/schedules/SchedulesView";
import { whenOf } from "../../src/views/schedules/schedule";
import { note, renderAt, setStage } from "./stage";

const MADE = {
  scheduleId: "s1",
  agentId: "debbie",
  cron: "*/30 * * * *",
  intervalSeconds: null,
  zone: "UTC",
  prompt: "Look after the others",
  event: null,
  data: null,
  missed: "once",
  nextAt: 2_000,
} as const;

test("a schedule that fired tells when it fires next and how often it has", () => {
  setStage([
    note("schedule.created", MADE),
    note("schedule.fired", { scheduleId: "s1", agentId: "debbie", dueAt: 2_000, nextAt: 3_800, taskId: "t" }),
  ]);
  renderAt("/s/default/schedules", <SchedulesView />);
  expect(screen.getByRole("row", { name: /Look after the others.*1/ })).toBeTruthy();
});

test("an agent is offered however its name is written", async () => {
  setStage([note("agent.created", { agentId: "debbie", name: "Debbie", description: "" })]);
  renderAt("/s/default/schedules", <NewSchedule onClose={() => {}} />);
  await userEvent.type(screen.getByRole("combobox", { name: "Agent", hidden: true }), "DEB");
  expect(document.querySelector("datalist option")?.textContent).toBe("Debbie");
});

test("a schedule that wakes its agent is made so, and told as such", async () => {
  const { calls } = setStage(
    [note("schedule.created", { ...MADE, wake: true }), note("schedule.created", { ...MADE, scheduleId: "s2" })],
    { "schedule.create": () => ({ scheduleId: "s3" }) as never },
  );
  renderAt("/s/default/schedules", <SchedulesView />);
  const [, waking, patient] = screen.getAllByRole("row");
  expect(waking?.textContent).toContain("wakes it");
  expect(patient?.textContent).not.toContain("wakes it");
  for (const wakes of [false, true]) {
    await userEvent.click(screen.getByRole("button", { name: "New schedule" }));
    await userEvent.type(screen.getByRole("combobox", { name: "Agent", hidden: true }), "debbie");
    await userEvent.type(screen.getByRole("textbox", { name: "Prompt", hidden: true }), "Look");
    if (wakes) await userEvent.click(screen.getByRole("checkbox", { name: /^Wakes the agent/, hidden: true }));
    await userEvent.click(screen.getByRole("button", { name: "Create", hidden: true }));
    expect(calls.at(-1)).toMatchObject({ method: "schedule.create", params: { agentId: "debbie", wake: wakes } });
  }
});

test("a schedule is paused at once and deleted only after a question", async () => {
  const done = {
    ...MADE,
    sessionId: "default",
    definition: {},
    paused: true,
    lastAt: null,
    fired: 0,
    cause: "",
    createdAt: 1,
  };
  const { calls } = setStage([note("schedule.created", MADE)], {
    "schedule.pause": () => done,
    "schedule.delete": () => done,
  });
  renderAt("/s/default/schedules", <SchedulesView />);
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  await userEvent.click(screen.getByRole("button", { name: "Delete" }));
  expect(calls.map(({ method }) => method)).toEqual(["schedule.pause"]);
  await userEvent.click(screen.getAllByRole("button", { name: "Delete", hidden: true }).at(-1) as HTMLElement);
  expect(calls.at(-1)).toEqual({ method: "schedule.delete", params: { sessionId: "default", scheduleId: "s1" } });
});

test("without schedules the page says how one is made", () => {
  setStage([]);
  renderAt("/s/default/schedules", <SchedulesView />);
  expect(screen.getByText("No schedules yet.")).toBeTruthy();
});

test("the times of a schedule are told in words", () => {
  expect(whenOf({ cron: null, intervalSeconds: 90, zone: "UTC" })).toBe("every 1 min 30 s");
  expect(whenOf({ cron: "0 9 * * *", intervalSeconds: null, zone: "Europe/Vienna" })).toBe("0 9 * * * (Europe/Vienna)");
});

test("of many schedules some are shown, and the one that the address names", () => {
  const many = Array.from({ length: 80 }, (_, index) =>
    note("schedule.created", { ...MADE, scheduleId: `many${index}` }),
  );
  setStage(many);
  renderAt("/s/default/schedules/many70", <SchedulesView />);
  expect(screen.getAllByRole("row")).toHaveLength(72);
  expect(screen.getByText("many70").closest("tr")?.dataset.marked).toBe("true");
});

test("without a connection the buttons say so, and do not speak of the past", () => {
  setStage([note("schedule.created", MADE)]);
  usePage.setState({ connection: "lost" });
  renderAt("/s/default/schedules", <SchedulesView />);
  for (const name of ["New schedule", "Pause", "Delete"]) {
    expect(screen.getByRole<HTMLButtonElement>("button", { name }).title).toBe("There is no connection to the server.");
  }
});

test("a long prompt takes two lines until all of it is wanted", async () => {
  setStage([note("schedule.created", { ...MADE, prompt: "Look. ".repeat(50) })]);
  renderAt("/s/default/schedules", <SchedulesView />);
  const more = screen.getByRole("button", { name: "Show all" });
  expect(more.getAttribute("aria-expanded")).toBe("false");
  await userEvent.click(more);
  expect(screen.getByRole("button", { name: "Show less" }).getAttribute("aria-expanded")).toBe("true");
});
