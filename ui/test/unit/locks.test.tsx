import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import type { Wait } from "../../src/projection/world";
import LocksView, { inLine } from "../../src/views/locks/LocksView";
import { note, renderAt, setStage } from "./stage";

const HELD = { name: "db", agentId: "a", taskId: "t", holder: "a", token: 7, expiresAt: 9_000 };
const NOBODY = { "lock.list": () => ({ locks: [] }), "resource.list": () => ({ resources: [] }) };

function wait(waiter: string, since: number): Wait {
  return {
    kind: "lock",
    agentId: waiter,
    taskId: waiter,
    waiter,
    target: "db",
    targets: ["db"],
    holders: ["a"],
    since,
    deadlineAt: null,
  };
}

test("those who wait stand in the order that the server tells, and the others behind them", () => {
  const waits = new Map([wait("late", 3), wait("first", 2), wait("unknown", 1)].map((each) => [each.waiter, each]));
  const told = [{ ...HELD, sessionId: "s", acquiredAt: 1, waiting: ["first", "late"].map(waiterOf) }];
  expect(inLine("db", waits, told).map(({ waiter }) => waiter)).toEqual(["first", "late", "unknown"]);
  expect(inLine("db", waits, undefined).map(({ waiter }) => waiter)).toEqual(["unknown", "first", "late"]);
  expect(inLine("other", waits, told)).toEqual([]);
});

function waiterOf(waiter: string) {
  return { waiter, agentId: waiter, taskId: waiter, ttlSeconds: 1, deadlineAt: 9, createdAt: 1 };
}

test("a lock is broken only after a question, with the reason", async () => {
  const { calls } = setStage([note("lock.acquired", HELD)], {
    ...NOBODY,
    "lock.break": () => ({ ...HELD, sessionId: "default", acquiredAt: 1 }),
  });
  renderAt("/s/default/locks", <LocksView />);
  await userEvent.click(screen.getByRole("button", { name: "Break" }));
  await userEvent.type(screen.getByLabelText(/Why/), "it hangs");
  await userEvent.click(screen.getAllByRole("button", { name: "Break", hidden: true }).at(-1) as HTMLElement);
  const params = { sessionId: "default", name: "db", reason: "it hangs" };
  expect(calls.filter(({ method }) => method === "lock.break")).toEqual([{ method: "lock.break", params }]);
});

test("what a person holds can be given back with its token", async () => {
  const mine = { ...HELD, agentId: null, taskId: null, holder: "local" };
  const { calls } = setStage([note("lock.acquired", mine)], {
    ...NOBODY,
    "lock.release": () => ({ ...mine, sessionId: "default", acquiredAt: 1 }),
  });
  renderAt("/s/default/locks", <LocksView />);
  await userEvent.click(screen.getByRole("button", { name: "Release" }));
  expect(calls.at(-1)).toEqual({ method: "lock.release", params: { sessionId: "default", name: "db", token: 7 } });
});
