import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { usePage } from "../../src/state/page";
import { BroadcastDialog } from "../../src/steer/BroadcastDialog";
import EventsView from "../../src/views/events/EventsView";
import { note, renderAt, setStage } from "./stage";

const SENT = {
  sessionId: "default",
  sender: "user",
  cause: "",
  data: { level: 3 },
  woken: 1,
  notified: 2,
  erasedAt: null,
};

function stage() {
  const events = [
    { ...SENT, eventId: "e2", name: "late", createdAt: 5_000 },
    { ...SENT, eventId: "e1", name: "early", createdAt: 1_000 },
  ];
  return setStage([note("agent.created", { agentId: "a", name: "A", description: "" })], {
    "async.listEvents": () => ({ events }),
    "async.broadcastEvent": ({ event }) => ({ ...SENT, eventId: "e3", name: event, createdAt: 6_000 }),
  });
}

test("in the past only the events of that time are shown", async () => {
  stage();
  usePage.setState(({ live }) => ({ playhead: { world: { ...live, at: 2_000 }, speed: 0 } }));
  renderAt("/s/default/events", <EventsView />);
  expect(await screen.findByText("early")).toBeTruthy();
  expect(screen.queryByText("late")).toBeNull();
});

test("in the past earlier events are looked for behind all that came later", async () => {
  const sent = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ ...SENT, eventId: `e${index}`, name: index === 990 ? "early" : "other", createdAt: 9_000 - index },
  }));
  const { calls } = setStage([], { "async.listEvents": ({ limit }) => ({ events: sent.slice(0, limit) }) });
  usePage.setState(({ live }) => ({ playhead: { world: { ...live, at: 8_010 }, speed: 0 } }));
  renderAt("/s/default/events", <EventsView />);
  expect(await screen.findByText("early")).toBeTruthy();
  expect(calls.map(({ params }) => params.limit)).toEqual([200, 800, 3_200]);
});

test("the page says so when not all events could be looked through", async () => {
  const sent = Array.from({ length: 10_000 }, (_, index) => ({
    ...{ ...SENT, eventId: `e${index}`, name: "other", createdAt: 9_000 },
  }));
  setStage([], { "async.listEvents": ({ limit }) => ({ events: sent.slice(0, limit) }) });
  usePage.setState(({ live }) => ({ playhead: { world: { ...live, at: 8_010 }, speed: 0 } }));
  renderAt("/s/default/events", <EventsView />);
  expect(await screen.findByText(/Only the newest 10K were looked through/)).toBeTruthy();
});

test("data that is not JSON is not sent, and the page says what is wrong", async () => {
  const { calls } = stage();
  renderAt("/s/default/events", <BroadcastDialog onClose={() => {}} />);
  await userEvent.type(screen.getByLabelText("Event"), "alert");
  await userEvent.type(screen.getByLabelText(/What it carries/), "high");
  await userEvent.click(screen.getByRole("button", { name: "Broadcast", hidden: true }));
  expect(await screen.findByText(/is not JSON/)).toBeTruthy();
  expect(calls).toEqual([]);
});

test("an event that is sent again after a failure has the same id, and another event another", async () => {
  const { calls } = setStage([], {
    "async.broadcastEvent": () => {
      throw new Error("The connection was lost.");
    },
  });
  renderAt("/s/default/events", <BroadcastDialog onClose={() => {}} />);
  await userEvent.type(screen.getByLabelText("Event"), "alert");
  const send = screen.getByRole("button", { name: "Broadcast", hidden: true });
  await userEvent.click(send);
  await screen.findByText("The connection was lost.");
  await userEvent.click(send);
  await userEvent.type(screen.getByLabelText("Event"), "s");
  await userEvent.click(send);
  const [first, again, other] = calls.map(({ params }) => params.eventId);
  expect(again).toBe(first);
  expect(other).toMatch(/./);
  expect(other).not.toBe(first);
});
