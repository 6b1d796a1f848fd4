import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Notification } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { tell, usePage } from "../../src/state/page";
import { backToLive, travelTo } from "../../src/state/playhead";
import LogView from "../../src/views/log/LogView";
import { rowAfter } from "../../src/views/log/useLogKeys";
import { note, renderAt, setStage } from "./stage";

/** A session in which ten agents are made, and made anew again and again, and which ends with a mail. */
function session(length: number) {
  const notes: Notification[] = Array.from({ length }, (_, index) => {
    const agentId = `agent${(index % 10) + 1}`;
    const made = note("agent.created", { agentId, name: agentId, description: "" });
    return { ...(index < 10 ? made : note("agent.redefined", { agentId })), seq: index + 1 };
  });
  const mail = { mailId: "m", threadId: "t", sender: "agent1", sequence: 1, recipient: "user", subject: "It is done" };
  const sent = note("mail.sent", { ...mail, priority: "normal", replyTo: null }, "task:t1");
  notes.push({ ...sent, seq: length + 1 });
  const list = ({ after = 0, limit = 1_000 }: { after?: number; limit?: number }) => ({
    notifications: notes.slice(after, after + limit),
    lastSeq: notes.length,
  });
  return { notes, stage: setStage(notes, { "events.list": list }) };
}

beforeEach(() => {
  backToLive();
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
});
afterEach(() => {
  backToLive();
  vi.restoreAllMocks();
});

test("a log of a hundred thousand entries is read only where it is looked at", async () => {
  const { stage } = session(100_000);
  renderAt("/s/default/log?follow=no", <LogView />);
  expect(await screen.findByText("agent1 was created")).toBeTruthy();
  expect(screen.getByText("100K entries")).toBeTruthy();
  expect(screen.getAllByRole("row").length).toBeLessThan(60);
  expect(stage.calls.filter(({ method }) => method === "events.list").length).toBeLessThanOrEqual(2);
});

test("a row opens what its notification carries, and its cause", async () => {
  session(5);
  const { history } = renderAt("/s/default/log?follow=no", <LogView />);
  fireEvent.click(await screen.findByText("agent1 mailed user: It is done"));
  const entry = screen.getByRole("complementary", { name: "Entry 6" });
  expect(within(entry).getByText(/"subject": "It is done"/)).toBeTruthy();
  expect(within(entry).getByText("task:t1")).toBeTruthy();
  expect(history?.at(-1)).toContain("entry=6");
  fireEvent.click(screen.getByRole("button", { name: "Close the entry" }));
  expect(screen.queryByRole("complementary")).toBeNull();
});

test("the page can be shown at the moment of an entry", async () => {
  session(5);
  renderAt("/s/default/log?entry=3", <LogView />);
  fireEvent.click(await screen.findByText(/Show the page at this moment/));
  await waitFor(() => expect(usePage.getState().playhead?.world.seq).toBe(3));
  expect(screen.getByText("3 entries")).toBeTruthy();
});

test("filters search the log from its end, and say how far they came", async () => {
  session(3_000);
  renderAt("/s/default/log?name=mail.", <LogView />);
  expect(await screen.findByText("agent1 mailed user: It is done")).toBeTruthy();
  expect(await screen.findByText("The whole log was searched.")).toBeTruthy();
  expect(screen.getByText("1 found")).toBeTruthy();
  expect(screen.queryByText("agent1 was created")).toBeNull();
});

test("a search rests when it has found enough, and goes on when it is asked to", async () => {
  session(1_500);
  renderAt("/s/default/log?name=agent.", <LogView />);
  fireEvent.click(await screen.findByText("Search further back"));
  await waitFor(() => expect(screen.queryByText("The whole log was searched.")).toBeTruthy(), { timeout: 3_000 });
});

test("what happens is added to what was found", async () => {
  const { notes } = session(5);
  renderAt("/s/default/log?text=latecomer", <LogView />);
  expect(await screen.findByText("Nothing of that kind.")).toBeTruthy();
  const late = { ...note("agent.created", { agentId: "latecomer", name: "latecomer", description: "" }), seq: 7 };
  notes.push(late);
  act(() => {
    usePage.setState(({ live }) => ({ live: reduce(live, [late]) }));
    tell([late]);
  });
  expect(await screen.findByText("latecomer was created")).toBeTruthy();
});

test("whoever drags the scrollbar up from the end is not pulled back", async () => {
  session(500);
  const { history } = renderAt("/s/default/log", <LogView />);
  const table = await screen.findByRole("table", { name: "Log" });
  Object.defineProperty(table, "scrollHeight", { value: 15_000 });
  const scrollTo = (top: number) => {
    Object.defineProperty(table, "scrollTop", { value: top, configurable: true, writable: true });
    fireEvent.scroll(table);
  };
  scrollTo(14_400);
  expect(screen.getByText("Following")).toBeTruthy();
  scrollTo(9_000);
  expect(history?.at(-1)).toContain("follow=no");
});

test("rows are numbered as the table counts them", async () => {
  session(5);
  renderAt("/s/default/log?name=mail.", <LogView />);
  const row = (await screen.findByText("agent1 mailed user: It is done")).closest("[role=row]");
  expect(row?.getAttribute("aria-rowindex")).toBe("2");
  expect(screen.getByRole("table", { name: "Log" }).getAttribute("aria-rowcount")).toBe("2");
});

test("in the past the log ends at the moment that is shown", async () => {
  session(5);
  renderAt("/s/default/log", <LogView />);
  await act(() => travelTo(2));
  expect(await screen.findByText("2 entries")).toBeTruthy();
  expect(screen.queryByText("agent3 was created")).toBeNull();
});

test("in the past an entry that came later is not told", async () => {
  session(50);
  renderAt("/s/default/log?entry=40", <LogView />);
  await within(screen.getByRole("complementary", { name: "Entry 40" })).findByText(/"agent10"/);
  await act(() => travelTo(20));
  const told = screen.getByRole("complementary", { name: "Entry 40" }).textContent;
  expect(told).toBe("Entry 40There was no such entry yet at the time that is shown.");
});

test("an entry that the address leads back to is brought in sight", async () => {
  session(5_000);
  const scrolled = vi.spyOn(HTMLElement.prototype, "scrollTo").mockImplementation(() => {});
  renderAt("/s/default/log?entry=3", <LogView />);
  await screen.findByRole("complementary", { name: "Entry 3" });
  scrolled.mockClear();
  act(() => window.history.pushState(null, "", "/s/default/log?entry=4000"));
  await waitFor(() => expect(scrolled).toHaveBeenCalled());
});

test("in the past the log is searched from the moment that is shown", async () => {
  const { stage } = session(5_000);
  await travelTo(1_500);
  stage.calls.length = 0;
  renderAt("/s/default/log?agent=agent1", <LogView />);
  expect(await screen.findByText("150 found")).toBeTruthy();
  expect(stage.calls.map(({ params }) => params.after)).not.toContain(3_000);
});

test("a number that the log does not have is answered in words", async () => {
  session(5);
  renderAt("/s/default/log?entry=900", <LogView />);
  expect(await screen.findByText("The log has no such entry.")).toBeTruthy();
});

test("before anything happened the log says what will be in it", () => {
  setStage([]);
  renderAt("/s/default/log", <LogView />);
  expect(screen.getByText("Nothing has happened yet.")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Create the first agent" })).toBeTruthy();
});

test("arrow keys go from entry to entry", async () => {
  session(5);
  const { history } = renderAt("/s/default/log?entry=3", <LogView />);
  const table = screen.getByRole("table", { name: "Log" });
  fireEvent.keyDown(table, { key: "ArrowDown" });
  expect(history?.at(-1)).toContain("entry=4");
  fireEvent.keyDown(table, { key: "Home" });
  expect(history?.at(-1)).toContain("entry=1");
  fireEvent.keyDown(table, { key: "Escape" });
  expect(history?.at(-1)).not.toContain("entry");
});

test("keys stop at the ends of the log", () => {
  expect(rowAfter("ArrowUp", 0, 10)).toBe(0);
  expect(rowAfter("PageDown", 5, 10)).toBe(9);
  expect(rowAfter("ArrowDown", -1, 10)).toBe(9);
  expect(rowAfter("x", 3, 10)).toBeNull();
  expect(rowAfter("End", 3, 0)).toBeNull();
});
