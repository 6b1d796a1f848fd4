import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Notification } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { EMPTY } from "../../src/projection/world";
import { tell, usePage } from "../../src/state/page";
import { backToLive, travelTo } from "../../src/state/playhead";
import TimelineView from "../../src/views/timeline/TimelineView";
import { lastWork } from "../../src/views/timeline/useRange";
import { note, renderAt, setStage } from "./stage";

const TASK = { threadId: "t", attempt: 1 } as const;

/** alice mails bob, who works on it. */
function session() {
  const mail = { mailId: "m", threadId: "t", sender: "alice", sequence: 1, recipient: "bob", subject: "Look at this" };
  const bobs = { ...TASK, agentId: "bob", taskId: "b", kind: "mailbox_message", mailId: "m" } as const;
  const script = [
    note("agent.created", { agentId: "alice", name: "Alice", description: "" }),
    note("agent.created", { agentId: "bob", name: "Bob", description: "" }),
    note("async.task.started", { ...TASK, agentId: "alice", taskId: "a", kind: "user_prompt", mailId: null }),
    note("mail.sent", { ...mail, priority: "normal", replyTo: null }, "task:a"),
    note("async.task.started", bobs),
    note("async.task.cancelled", { agentId: "bob", taskId: "b", reason: "" }),
  ];
  const notes: Notification[] = script.map((each, index) => ({ ...each, seq: index + 1, at: 1_001 + index }));
  const list = ({ after = 0, limit = 1_000 }: { after?: number; limit?: number }) => ({
    notifications: notes.slice(after, after + limit),
    lastSeq: notes.length,
  });
  setStage(notes, { "events.list": list });
  return notes;
}

function bar(shown: { container: HTMLElement }, id: string): Element | null {
  return shown.container.querySelector(`[data-bar="${id}"]`);
}

beforeEach(() => backToLive());
afterEach(() => backToLive());

test("each agent has a lane with its bars, and arrows show what led to what", async () => {
  session();
  const shown = renderAt("/s/default/timeline", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  expect(bar(shown, "task:a")?.querySelector("title")?.textContent).toBe("user prompt");
  expect(shown.container.querySelector(".timeline-arrows path[data-kind=mail]")).toBeTruthy();
  expect(shown.container.querySelector(".timeline-names")?.textContent).toContain("Alice");
});

test("a click on a bar shows its details, and where it came from", async () => {
  session();
  const shown = renderAt("/s/default/timeline", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  const rect = bar(shown, "task:b")?.querySelector("rect") as Element;
  fireEvent.pointerDown(rect, { button: 0, pointerId: 1, clientX: 300 });
  fireEvent.pointerUp(rect, { button: 0, pointerId: 1, clientX: 300 });
  expect(await screen.findByRole("complementary", { name: "Details" })).toBeTruthy();
  expect(shown.history?.at(-1)).toContain("bar=task%3Ab");
  expect(screen.getByText("cancelled")).toBeTruthy();
  fireEvent.click(screen.getByText("mail, Alice: Look at this"));
  expect(shown.history?.at(-1)).toContain("bar=task%3Aa");
  expect(screen.getByText("still running")).toBeTruthy();
});

test("the range is in the address after zooming, and an address with one is shown", async () => {
  session();
  const shown = renderAt("/s/default/timeline?range=1000.000-1010.000", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  fireEvent.click(screen.getByRole("button", { name: "Zoom in" }));
  await waitFor(() => expect(shown.history?.at(-1)).toMatch(/range=1002\.\d+-1007\.\d+/));
});

test("keys move and zoom the timeline", async () => {
  session();
  const shown = renderAt("/s/default/timeline?range=1000.000-1010.000", <TimelineView />);
  const box = await screen.findByRole("region", { name: /Timeline/ });
  fireEvent.keyDown(box, { key: "ArrowRight" });
  await waitFor(() => expect(shown.history?.at(-1)).toContain("range=1001.000-1011.000"));
  fireEvent.keyDown(box, { key: "." });
  expect(shown.history?.at(-1)).toContain("bar=");
});

test("with a playhead its moment is a line", async () => {
  session();
  const shown = renderAt("/s/default/timeline?range=1000.000-1010.000", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  expect(shown.container.querySelector("[data-moment]")).toBeNull();
  await act(() => travelTo(4));
  expect(shown.container.querySelector("[data-moment]")).toBeTruthy();
  expect(bar(shown, "task:b")).toBeTruthy();
});

test("what comes live is drawn", async () => {
  const notes = session();
  const shown = renderAt("/s/default/timeline?range=1000.000-1030.000", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  const params = { ...TASK, agentId: "bob", taskId: "c", kind: "user_prompt", mailId: null } as const;
  const fresh: Notification = { ...note("async.task.started", params), seq: 7, at: 1_010 };
  notes.push(fresh);
  act(() => {
    usePage.setState(({ live }) => ({ live: reduce(live, [fresh]) }));
    tell([fresh]);
  });
  await waitFor(() => expect(bar(shown, "task:c")).toBeTruthy());
});

test("lanes can be filtered by agent", async () => {
  session();
  const shown = renderAt("/s/default/timeline?agent=bob", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  expect(bar(shown, "task:a")).toBeNull();
});

test("a timeline that would open after the last bar opens on the work before it", async () => {
  const notes = session();
  const now = Date.now() / 1000;
  const completed = { agentId: "alice", taskId: "a", result: "" } as never;
  const fresh = { agentId: "carol", name: "Carol", description: "" };
  const more: Notification[] = [
    { ...note("async.task.completed", completed), seq: 7, at: 1_008 },
    { ...note("agent.created", fresh), seq: 8, at: now },
  ];
  notes.push(...more);
  usePage.setState(({ live }) => ({ live: reduce(live, more), createdAt: 1_000 }));
  const shown = renderAt("/s/default/timeline", <TimelineView />);
  await waitFor(() => expect(bar(shown, "task:b")).toBeTruthy());
  expect(screen.getByRole("button", { name: "Follow" })).toBeTruthy();
});

test("a timeline of a session that has only begun follows", async () => {
  const fresh = { agentId: "carol", name: "Carol", description: "" };
  const begun: Notification = { ...note("agent.created", fresh), seq: 1, at: Date.now() / 1000 };
  setStage([begun], { "events.list": () => ({ notifications: [begun], lastSeq: 1 }) });
  renderAt("/s/default/timeline", <TimelineView />);
  await waitFor(() => expect(screen.getByRole("status").textContent).toContain("Give one a task"));
  expect(screen.getByRole("button", { name: "Following" })).toBeTruthy();
});

test("before there is an agent the timeline says what will be in it, and how the first is made", () => {
  setStage([note("session.opened", { reason: "" } as never)]);
  renderAt("/s/default/timeline", <TimelineView />);
  expect(screen.getByText("Nothing has happened yet.")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Create the first agent" })).toBeTruthy();
});

test("an agent worked for the last time when it did something, or works now; that a session is opened is no work", () => {
  const made = note("agent.created", { agentId: "bob", name: "Bob", description: "" });
  const idle = reduce(EMPTY, [{ ...made, seq: 1, at: 100 }]);
  expect(lastWork({ ...idle, seq: 2, at: 900 })).toBe(100);
  const started = note("async.task.started", {
    ...TASK,
    agentId: "bob",
    taskId: "b",
    kind: "user_prompt",
    mailId: null,
  });
  const atWork = reduce(idle, [{ ...started, seq: 2, at: 200 }]);
  expect(lastWork({ ...atWork, seq: 3, at: 900 })).toBe(900);
});
