import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { readNumber, readTime } from "../../src/parts/numbers";
import { useNotices } from "../../src/state/actions";
import { broadcastInWords } from "../../src/steer/BroadcastDialog";
import { SteerDialog } from "../../src/steer/SteerDialog";
import { NewLock } from "../../src/views/locks/NewLock";
import { NewSchedule } from "../../src/views/schedules/NewSchedule";
import { note, renderAt, setStage } from "./stage";

const hidden = { hidden: true };

function refuse(): never {
  throw new Error("The server does not want it.");
}

async function press(name: string) {
  await userEvent.click(screen.getByRole("button", { name, ...hidden }));
}

function told(): string {
  return screen.getByRole("alert", hidden).textContent ?? "";
}

test("what the server refuses is told in the dialog, which keeps what was typed", async () => {
  setStage([], { "schedule.create": refuse });
  const closed = vi.fn();
  renderAt("/s/default/schedules", <NewSchedule agentId="debbie" onClose={closed} />);
  await userEvent.type(screen.getByLabelText("Prompt"), "Look around");
  await press("Create");
  expect(told()).toBe("The server does not want it.");
  expect(screen.getByLabelText<HTMLTextAreaElement>("Prompt").value).toBe("Look around");
  expect(closed).not.toHaveBeenCalled();
  expect(useNotices.getState().notices).toEqual([]);
  await userEvent.type(screen.getByLabelText("Prompt"), "!");
  expect(told()).toBe("");
});

test("a dialog about a single agent waits for how it ends", async () => {
  setStage([], { "async.wakeAgent": refuse });
  const closed = vi.fn();
  renderAt("/s/default", <SteerDialog action="wake" agentIds={["bob"]} onClose={closed} />);
  await press("Wake");
  expect(told()).toBe("The server does not want it.");
  expect(closed).not.toHaveBeenCalled();
});

test("a dialog that was closed before it ended tells how it ended beside the page", async () => {
  let fail = () => {};
  setStage([], {
    "async.wakeAgent": () =>
      new Promise((_, reject) => {
        fail = () => reject(new Error("It was away."));
      }) as never,
  });
  const { unmount } = renderAt("/s/default", <SteerDialog action="wake" agentIds={["bob"]} onClose={vi.fn()} />);
  await press("Wake");
  unmount();
  fail();
  await vi.waitFor(() => expect(useNotices.getState().notices.map(({ text }) => text)).toEqual(["It was away."]));
});

test("a sleep that is too long is refused in the unit of the form, and nothing is sent", async () => {
  const { calls } = setStage([], {});
  renderAt("/s/default", <SteerDialog action="sleep" agentIds={["bob"]} onClose={vi.fn()} />);
  await userEvent.clear(screen.getByLabelText("For"));
  await userEvent.type(screen.getByLabelText("For"), "999999999999");
  await press("Sleep");
  expect(told()).toBe("How long it sleeps must be a number of minutes above 0 and at most 100 years.");
  expect(calls).toEqual([]);
});

test("a lock is had for a week at most, and a schedule fires once a second at most", async () => {
  setStage([], {});
  const { unmount } = renderAt("/s/default/locks", <NewLock onClose={vi.fn()} />);
  await userEvent.type(screen.getByLabelText("Name"), "db");
  await userEvent.type(screen.getByLabelText(/minutes/), "e99");
  await press("Take it");
  expect(told()).toContain("at most 7 days");
  unmount();
  renderAt("/s/default/schedules", <NewSchedule agentId="debbie" onClose={vi.fn()} />);
  await userEvent.type(screen.getByLabelText("Prompt"), "Look");
  await userEvent.selectOptions(screen.getByLabelText("When"), "interval");
  await userEvent.clear(screen.getByLabelText("Minutes"));
  await userEvent.type(screen.getByLabelText("Minutes"), "0.001");
  await press("Create");
  expect(told()).toContain("at least a second");
});

test("a lock that the user has already is renewed rather than waited for", async () => {
  const mine = { name: "db", agentId: null, taskId: null, holder: "user", token: 7, expiresAt: 9_000 };
  const { calls } = setStage([note("lock.acquired", mine)], {
    "lock.renew": () => ({ ...mine, sessionId: "default", acquiredAt: 1 }),
  });
  renderAt("/s/default/locks", <NewLock onClose={vi.fn()} />);
  await userEvent.type(screen.getByLabelText("Name"), "db");
  expect(screen.getByRole("status", hidden).textContent).toContain("You have it already");
  await press("Renew");
  const params = { sessionId: "default", name: "db", token: 7, ttlSeconds: 600 };
  expect(calls).toEqual([{ method: "lock.renew", params }]);
});

test("a lock that an agent holds is waited for", async () => {
  const held = { name: "db", agentId: "user", taskId: "t", holder: "user", token: 7, expiresAt: 9_000 };
  setStage([note("lock.acquired", held)], {});
  renderAt("/s/default/locks", <NewLock onClose={vi.fn()} />);
  await userEvent.type(screen.getByLabelText("Name"), "db");
  expect(screen.getByRole("status", hidden).textContent).toContain("you wait for it");
});

test("numbers are read with a decimal point or a decimal comma, but not if it could be either", () => {
  expect([" 0.5 ", "0,5", "0,005", "1,5", "12", "-3", ",5"].map(readNumber)).toEqual([
    0.5, 0.5, 0.005, 1.5, 12, -3, 0.5,
  ]);
  expect(["", "soon", "1,000", "1,000,000", "1.5,5"].map(readNumber)).toEqual(Array(5).fill(Number.NaN));
});

test("a time is read in its unit", () => {
  expect(readTime("1,5", { what: "The time", unit: "hours" })).toBe(5_400);
  expect(readTime("0", { what: "The time", unit: "hours" })).toMatch(/above 0/);
});

test("an event that reached nobody says so", () => {
  expect(broadcastInWords("ok", 0, 0)).toContain("Nobody");
  expect(broadcastInWords("ok", 1, 0)).toBe("The event ok woke 1 agent and gave nobody a task.");
  expect(broadcastInWords("ok", 0, 2)).toBe("The event ok woke nobody and gave 2 agents a task.");
});
