import { screen, act as settled, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { usePage } from "../../src/state/page";
import LocksView from "../../src/views/locks/LocksView";
import { note, renderAt, setStage } from "./stage";

const HELD = { name: "db", agentId: "a", taskId: "t", holder: "a", token: 7, expiresAt: 9_000 };
const NOBODY = { "resource.list": () => ({ resources: [] }) };

const waiting = (waitId: string, waiter: string) =>
  note("lock.waiting", {
    ...{ name: "db", agentId: null, taskId: null, stepId: null, waitId, waiter },
    ...{ holder: "a", ttlSeconds: 1, deadlineAt: 9_000 },
  } as never);

test("those who wait stand in the order in which they get it, one who waits twice as well", () => {
  setStage([note("lock.acquired", HELD), waiting("1", "zed"), waiting("2", "ann"), waiting("3", "zed")], NOBODY);
  renderAt("/s/default/locks", <LocksView />);
  const line = within(screen.getByRole("list", { name: "Who waits for db" })).getAllByRole("listitem");
  expect(line.map(({ textContent }) => textContent?.split(" ")[0])).toEqual(["zed", "ann", "zed"]);
});

test("the lock that the address names is marked, however many there are", () => {
  const held = Array.from({ length: 120 }, (_, index) => note("lock.acquired", { ...HELD, name: `l ${index}` }));
  setStage(held, NOBODY);
  renderAt("/s/default/locks/l%20110", <LocksView />);
  const marked = screen.getAllByRole("article").filter((card) => card.dataset.marked === "true");
  expect(marked.map((card) => card.getAttribute("aria-label"))).toEqual(["The lock l 110"]);
  expect(screen.getByRole("button", { name: "Show 9 more of 9" })).toBeTruthy();
});

test("what tools touch is kept in sight while the connection is away, and not told of the past", async () => {
  setStage([note("lock.acquired", HELD)], NOBODY);
  renderAt("/s/default/locks", <LocksView />);
  await screen.findByText("Nothing at the moment.");
  settled(() => usePage.setState({ connection: "lost" }));
  expect(screen.getByText("Nothing at the moment.")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Take a lock" }).title).toBe("There is no connection to the server.");
  settled(() => usePage.setState(({ live }) => ({ playhead: { world: live, speed: 0 } })));
  expect(screen.getByText("What tools touched then is not kept.")).toBeTruthy();
});

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
