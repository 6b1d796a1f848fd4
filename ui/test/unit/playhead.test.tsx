import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Notification } from "../../src/client/client";
import { closeDialog, openDialog } from "../../src/shell/dialogState";
import { Past, TravelButton } from "../../src/shell/Past";
import { tell, usePage, useWorld } from "../../src/state/page";
import { backToLive, play, travelTo, useTravel } from "../../src/state/playhead";
import { note, renderAt, setStage } from "./stage";

function made(agentId: string): Notification {
  return note("agent.created", { agentId, name: agentId, description: "" });
}

/** A session in which twenty agents were made, one each second; numbered from `first` on. */
function twenty() {
  const notes = Array.from({ length: 20 }, (_, index) => ({ ...made(`agent${index}`), seq: index + 1 }));
  const list = ({ after = 0, limit = 1_000 }: { after?: number; limit?: number }) => ({
    notifications: notes.slice(after, after + limit),
    lastSeq: notes.length,
  });
  return { notes, stage: setStage(notes, { "events.list": list }) };
}

function Agents() {
  const agents = useWorld((world) => world.agents);
  return <p>{agents.size} agents</p>;
}

const page = (
  <>
    <TravelButton />
    <Past />
    <Agents />
  </>
);

beforeEach(() => backToLive());
afterEach(() => {
  vi.useRealTimers();
  backToLive();
});

test("the whole page shows the moment that was travelled to, and the present again afterwards", async () => {
  twenty();
  renderAt("/s/default", page);
  expect(screen.getByText("20 agents")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Travel in time" }));
  const slider = await screen.findByRole("slider", { name: "Moment" });
  fireEvent.change(slider, { target: { value: "7" } });
  expect(await screen.findByText("7 agents")).toBeTruthy();
  expect(screen.getByText(/notification 7 of 20/)).toBeTruthy();
  fireEvent.click(screen.getByText("Back to live"));
  expect(screen.getByText("20 agents")).toBeTruthy();
  expect(screen.queryByRole("slider")).toBeNull();
});

test("an address that names no moment is shown live, and keeps nothing of it", async () => {
  twenty();
  renderAt("/s/default?at=abc&tab=log", page);
  await waitFor(() => expect(location.search).toBe("?tab=log"));
  expect(usePage.getState().playhead).toBeNull();
});

test("an address with a number opens the page at that moment", async () => {
  twenty();
  renderAt("/s/default?at=5", page);
  expect(await screen.findByText("5 agents")).toBeTruthy();
});

test("an address that leads from the past of one session into that of another opens the other at its moment", async () => {
  twenty();
  renderAt("/s/default?at=5", page);
  expect(await screen.findByText("5 agents")).toBeTruthy();
  act(() => window.history.pushState(null, "", "/s/other?at=9"));
  const { live } = usePage.getState();
  act(() => usePage.setState({ sessionId: "other", isLoaded: false, playhead: null }));
  await act(async () => usePage.setState({ isLoaded: true, live }));
  expect(await screen.findByText("9 agents")).toBeTruthy();
  expect(location.search).toBe("?at=9");
});

test.each(["", "soon", "-1"])("an address that has '%s' for a number opens the page as it is now", async (given) => {
  twenty();
  renderAt(`/s/default?at=${given}`, page);
  await act(async () => {});
  expect(screen.getByText("20 agents")).toBeTruthy();
  expect(usePage.getState().playhead).toBeNull();
});

test("the address has the moment, and loses it when the page is live again", async () => {
  twenty();
  const { history } = renderAt("/s/default", page);
  await act(() => travelTo(9));
  await waitFor(() => expect(history?.at(-1)).toContain("at=9"));
  act(() => backToLive());
  await waitFor(() => expect(history?.at(-1)).not.toContain("at="));
});

test("arrow keys step, and Escape leads back", async () => {
  twenty();
  renderAt("/s/default?at=5", page);
  await screen.findByRole("slider");
  await screen.findByText("5 agents");
  fireEvent.keyDown(document.body, { key: "ArrowRight" });
  expect(await screen.findByText("6 agents")).toBeTruthy();
  fireEvent.keyDown(document.body, { key: "ArrowLeft" });
  fireEvent.keyDown(document.body, { key: "ArrowLeft" });
  expect(await screen.findByText("4 agents")).toBeTruthy();
  fireEvent.keyDown(document.body, { key: "Escape" });
  expect(await screen.findByText("20 agents")).toBeTruthy();
});

test("keys that are typed into a field do not travel", async () => {
  twenty();
  renderAt(
    "/s/default?at=5",
    <>
      {page}
      <input aria-label="Name" />
    </>,
  );
  await screen.findByRole("slider");
  fireEvent.keyDown(screen.getByLabelText("Name"), { key: "ArrowRight" });
  fireEvent.keyDown(screen.getByLabelText("Name"), { key: "Escape" });
  expect(usePage.getState().playhead).not.toBeNull();
  expect(useTravel.getState().wanted).toBe(5);
});

test("keys that are typed before a dialog is there do not travel", async () => {
  twenty();
  renderAt("/s/default?at=5", page);
  await screen.findByRole("slider");
  openDialog({ kind: "palette" });
  fireEvent.keyDown(document.body, { key: "ArrowRight" });
  closeDialog();
  expect(useTravel.getState().wanted).toBe(5);
});

test("what happens meanwhile is taken in and counted", async () => {
  const { notes } = twenty();
  renderAt("/s/default?at=5", page);
  await screen.findByRole("slider");
  await screen.findByText("5 agents");
  const fresh = { ...made("late"), seq: 21 };
  notes.push(fresh);
  act(() => {
    usePage.setState(({ live }) => ({ live: { ...live, seq: 21 } }));
    tell([fresh]);
  });
  expect(screen.getByText(", 1 new meanwhile")).toBeTruthy();
  expect(screen.getByText(/of 21/)).toBeTruthy();
  expect(screen.getByText("5 agents")).toBeTruthy();
});

test("playing goes through what happened at its speed, and stops at the end", async () => {
  twenty();
  await travelTo(10);
  vi.useFakeTimers();
  const playing = play(5);
  await vi.advanceTimersByTimeAsync(1_000);
  const { playhead } = usePage.getState();
  expect(playhead?.speed).toBe(5);
  expect(playhead?.world.seq).toBeGreaterThanOrEqual(14);
  expect(playhead?.world.seq).toBeLessThanOrEqual(15);
  await vi.advanceTimersByTimeAsync(3_000);
  await playing;
  expect(usePage.getState().playhead?.world.agents.size).toBe(20);
  expect(usePage.getState().playhead?.speed).toBe(0);
});

test("a moment that cannot be read says why, and is asked for again", async () => {
  const { notes } = twenty();
  let isBroken = true;
  setStage(notes, {
    "events.list": ({ after = 0 }) => {
      if (isBroken) throw new Error("The server is away.");
      return { notifications: notes.slice(after), lastSeq: 20 };
    },
  });
  renderAt("/s/default?at=3", page);
  expect(await screen.findByText("The server is away.")).toBeTruthy();
  isBroken = false;
  fireEvent.click(screen.getByText("Try again"));
  expect(await screen.findByText("3 agents")).toBeTruthy();
});

test("another session is shown live", async () => {
  twenty();
  await travelTo(3);
  act(() => usePage.setState({ sessionId: "other" }));
  expect(usePage.getState().playhead).toBeNull();
});
