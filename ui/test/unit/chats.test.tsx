import { act, cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Route } from "wouter";
import {
  type MessageRecord,
  type Notification,
  type Params,
  type RoomRecord,
  RpcError,
  type TaskRecord,
} from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { tell, usePage } from "../../src/state/page";
import { seenKey, useSeen } from "../../src/state/seen";
import { written } from "../../src/state/streams";
import ChatsView from "../../src/views/chats/ChatsView";
import { note, renderAt, setStage } from "./stage";

beforeAll(() => import("../../src/parts/markdown/Rendered"));
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(60);
  Object.assign(HTMLDialogElement.prototype, { showModal() {}, close() {} });
  localStorage.clear();
  sessionStorage.clear();
  useSeen.setState({ seen: {} });
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const created = (agentId: string) => note("agent.created", { agentId, name: agentId.toUpperCase(), description: "" });
const GROUP = { roomId: "team", kind: "group" as const, title: "The team", members: ["ann", "bob"], hopLimit: 4 };

function said(number: number, sender: string, text: string, taskId: string | null = null): Notification {
  const about = { roomId: "team", messageId: `m${number}`, mentions: [], hops: 0 };
  return note("room.message", { ...about, number, sender, text, taskId });
}

function asked(number: number, agentId: string, taskId: string): Notification {
  return note("room.answering", { roomId: "team", number, agentId, taskId });
}

function delta(taskId: string, channel: "analysis" | "commentary" | "final", text: string): Notification {
  const about = { agentId: "ann", taskId, stepId: "s1", attempt: 1, index: 0 };
  return { ...note("async.task.delta", { ...about, channel, text } as never), seq: 0 } as Notification;
}

/** Have this happen while the page looks. */
function happen(...notes: Notification[]): void {
  act(() => {
    usePage.setState(({ live, streams }) => ({ live: reduce(live, notes), streams: written(streams, notes) }));
    tell(notes);
  });
}

const TASK = {
  state: "completed",
  result: { analysis: "hm", commentary: "I look.", final: "Done." },
  error: null,
  finishedAt: 5_000,
};

function stage(
  kept: Partial<MessageRecord>[] = [],
  post: (params: Params<"room.post">) => MessageRecord = () => kept[0] as never,
) {
  const records = kept.map((fields, index) => ({
    ...{
      sessionId: "default",
      messageId: `m${index + 1}`,
      roomId: "team",
      number: index + 1,
      sender: "user",
      text: "",
    },
    ...{ mentions: [], asked: {}, taskId: null, hops: 0, cause: "", createdAt: 1_000 + index },
    ...{ parts: null, erasedAt: null, ...fields },
  }));
  const started = (agentId: string) => note("agent.started", { agentId, reason: "" });
  const before = [created("ann"), created("bob"), started("ann"), started("bob"), note("room.created", GROUP)];
  return setStage([...before, ...records.map(({ number, sender, text }) => said(number, sender, text))], {
    "room.messages": ({ after = 0, limit = 100 }) => ({ messages: records.slice(after, after + limit) }),
    "room.post": post,
    "task.get": () => TASK as TaskRecord,
    "attachment.get": () => ({ ...PICTURE, data: "aGVsbG8=" }),
    "room.openChat": () => opened("chat~bob"),
    "room.create": () => opened("new"),
    "room.removeMember": ({ agentId }) => {
      if (agentId === "bob") throw new Error("bob has left already.");
      return {} as never;
    },
  });
}

/** The room, of which the page hears as it is made. */
function opened(roomId: string): RoomRecord {
  const notes = [note("room.created", { ...GROUP, roomId })];
  usePage.setState(({ live }) => ({ live: reduce(live, notes) }));
  return {
    ...GROUP,
    roomId,
    sessionId: "default",
    lastNumber: 0,
    seen: {},
    createdAt: 0,
    erasedUntil: 0,
    deletedAt: null,
  };
}

function show(address = "/s/default/chats/team") {
  return renderAt(address, <Route path="/s/default/chats/:item?" component={ChatsView} />);
}

const field = () => screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Message" });

const PICTURE = { digest: "a".repeat(64), mediaType: "image/png", size: 70, name: "chart.png", tokens: 86 };
const DRAWING = { digest: "b".repeat(64), mediaType: "image/svg+xml", size: 9, name: "evil.svg", tokens: 50 };

describe("images and files", () => {
  test("a name that would be read backwards shows that it would", async () => {
    stage([{ text: "Look.", parts: [{ ...DRAWING, name: "evil\u202egnp.svg" }] }]);
    show();
    expect(await screen.findByRole("button", { name: /evil⟦RLO⟧gnp.svg/ })).toBeTruthy();
  });

  test("images that run nothing are shown, all else is only to be saved", async () => {
    stage([{ text: "Look.", parts: [PICTURE, DRAWING] }]);
    show();
    const picture = await screen.findByRole<HTMLImageElement>("img", { name: "chart.png" });
    expect(picture.src).toBe("data:image/png;base64,aGVsbG8=");
    expect(screen.getAllByRole("img", { name: /png|svg/ })).toHaveLength(1);
    expect(screen.getByRole("button", { name: /evil.svg/ })).toBeTruthy();
  });

  test("those that are chosen go along with the next message, and one can be left out", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    show();
    const chosen = [new File(["hello"], "a.txt"), new File(["no"], "b.txt")];
    await user.upload(screen.getByLabelText("Images and files"), chosen);
    await user.click(await screen.findByRole("button", { name: "Leave b.txt out" }));
    await user.type(field(), "Look.{Enter}");
    await waitFor(() => expect(calls.at(-1)?.method).toBe("room.post"));
    const params = calls.find(({ method }) => method === "room.post")?.params;
    expect(params).toMatchObject({ text: "Look.", parts: [{ name: "a.txt", data: "aGVsbG8=" }] });
    await waitFor(() => expect(screen.queryByText("a.txt")).toBeNull());
  });
});

describe("a room", () => {
  test("shows what was said, the newest page of it", async () => {
    const { calls } = stage(Array.from({ length: 80 }, (_, index) => ({ text: `word ${index + 1}` })));
    show();
    expect(await screen.findByText("word 31")).toBeTruthy();
    const pages = calls.filter(({ method }) => method === "room.messages").map(({ params }) => params);
    expect(pages).toEqual([{ sessionId: "default", roomId: "team", after: 30, limit: 50 }]);
  });

  test("says that an answer waits for the reader's approval, with a way to it, also after some of it was written", async () => {
    stage();
    show();
    const task = { agentId: "ann", taskId: "t1", threadId: "t1", kind: "room_message" as const };
    happen(said(1, "user", "Well?"), asked(1, "ann", "t1"));
    happen(note("async.task.started", { ...task, attempt: 1, mailId: null }), delta("t1", "final", "I pay."));
    await screen.findByText("is writing…");
    const call = { agentId: "ann", taskId: "t1", approvalId: "t1.2", tool: "pay" };
    happen(note("approval.requested", { ...call, digest: "d" }));
    expect(screen.getByText(/^waits for/).textContent).toBe("waits for your approval");
    expect(screen.getByRole("link", { name: "your approval" }).getAttribute("href")).toBe("/s/default/approvals/t1.2");
    expect(screen.queryByText(/thinking|writing/)).toBeNull();
    happen(note("approval.approved", { ...call, decidedBy: "local", reason: "" }));
    expect(screen.queryByRole("link", { name: "your approval" })).toBeNull();
  });

  test("shows an answer as it is written, then as a message in the same place", async () => {
    stage();
    show();
    happen(said(1, "user", "Well?"), asked(1, "ann", "t1"), asked(1, "bob", "t2"));
    expect(screen.getAllByText("is thinking…")).toHaveLength(2);
    happen(delta("t1", "final", "It is "), delta("t1", "final", "**done**"));
    const cell = (await screen.findByText("done")).closest(".chat-answer");
    expect(screen.getAllByText("is thinking…")).toHaveLength(1);
    expect(screen.getByText("is writing…")).toBeTruthy();
    happen(note("step.finished", { agentId: "ann", taskId: "t1", stepId: "s1", kind: "model" } as never));
    expect(screen.getByText("done")).toBeTruthy();
    happen(said(2, "ann", "It is **done** now.", "t1"));
    expect((await screen.findByText(/now\./)).closest(".chat-answer")).toBe(cell);
    expect(screen.queryByText("is writing…")).toBeNull();
  });

  test("has commentary and analysis folded, live from the stream, later from the task", async () => {
    const { calls } = stage();
    show();
    happen(said(1, "user", "Well?"), asked(1, "ann", "t1"), delta("t1", "commentary", "I look."));
    expect(screen.queryByText("I look.")).toBeNull();
    const details = screen.getByText("Commentary and analysis").closest("details") as HTMLDetailsElement;
    act(() => {
      details.open = true;
      details.dispatchEvent(new Event("toggle"));
    });
    expect(await screen.findByText("I look.")).toBeTruthy();
    expect(calls.some(({ method }) => method === "task.get")).toBe(false);
    happen(said(2, "ann", "Done.", "t1"));
    expect(await screen.findByText("hm")).toBeTruthy();
    expect(calls.find(({ method }) => method === "task.get")?.params).toMatchObject({ taskId: "t1" });
  });

  test("says who had nothing to add, who failed and why, and who was not asked", async () => {
    stage();
    show();
    const about = { roomId: "team", number: 1 };
    happen(
      ...[said(1, "user", "Well?"), asked(1, "ann", "t1"), asked(1, "bob", "t2")],
      note("room.passed", { ...about, agentId: "ann", taskId: "t1" }),
      note("room.unanswered", { ...about, agentId: "bob", taskId: "t2", error: { code: "x", message: "It broke." } }),
      note("room.absent", { ...about, agentId: "cy", reason: "stopped" }),
    );
    expect(screen.getByText(/had nothing to add/).textContent).toBe("ANN had nothing to add.");
    expect(screen.getByText(/did not answer/).textContent).toBe("BOB did not answer: It broke. See its task");
    expect(screen.getByText(/was not asked/).textContent).toBe("cy was not asked: it is stopped.");
  });

  test("asks the task why a member was silent before the page looked", async () => {
    stage([{ text: "Well?", asked: { ann: "t1" } }]);
    show();
    expect(await screen.findByText(/did not answer/)).toBeTruthy();
    expect((await screen.findByText(/It left the room before it answered/)).textContent).toContain("ANN");
  });

  test("shows of the past only what had been said", async () => {
    stage([{ text: "first" }, { text: "second" }]);
    const { live } = usePage.getState();
    const team = live.rooms.get("team");
    const world = { ...live, rooms: new Map([["team", { ...team, lastNumber: 1 } as never]]) };
    usePage.setState({ playhead: { world, speed: 0 } });
    show();
    expect(await screen.findByText("first")).toBeTruthy();
    expect(screen.queryByText("second")).toBeNull();
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Send" }).title).toContain("This is the past");
  });

  test("says of the past who did not answer only if it was over then", async () => {
    stage([{ text: "Well?", asked: { ann: "t9" } }, { text: "Later" }]);
    const at = (time: number) =>
      act(() => usePage.setState(({ live }) => ({ playhead: { world: { ...live, at: time }, speed: 0 } })));
    at(4_000);
    show();
    expect(await screen.findByText("Well?")).toBeTruthy();
    await act(async () => {});
    expect(screen.queryByText(/did not answer/)).toBeNull();
    at(5_000);
    expect(screen.queryByText(/did not answer/)).toBeNull();
    at(6_000);
    expect(screen.getByText(/did not answer/)).toBeTruthy();
  });

  test("counts as read while its end is in sight", async () => {
    stage([{ text: "first" }]);
    show();
    await screen.findByText("first");
    expect(useSeen.getState().seen[seenKey(usePage.getState())]).toEqual({ team: 1 });
    happen(said(2, "ann", "second"));
    expect(useSeen.getState().seen[seenKey(usePage.getState())]).toEqual({ team: 2 });
  });

  test("that is not there says so", () => {
    stage();
    show("/s/default/chats/none");
    expect(screen.getByText("There is no such chat")).toBeTruthy();
  });
});

describe("the composer", () => {
  test("sends with Enter, and begins a line with Shift and Enter", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    show();
    await user.type(field(), "one{Shift>}{Enter}{/Shift}two{Enter}");
    await waitFor(() => expect(field().value).toBe(""));
    const posted = calls.filter(({ method }) => method === "room.post");
    expect(posted).toHaveLength(1);
    expect(posted[0]?.params).toMatchObject({ roomId: "team", text: "one\ntwo" });
  });

  test("sends at once to who is at an answer, by a button that is there only then", async () => {
    const user = userEvent.setup();
    const { calls } = stage([{ text: "dig here" }]);
    show();
    await screen.findByText("dig here");
    expect(screen.queryByRole("button", { name: "Send now" })).toBeNull();
    happen(asked(1, "ann", "t1"));
    await user.type(field(), "not so deep");
    await user.click(screen.getByRole("button", { name: "Send now" }));
    await waitFor(() => expect(field().value).toBe(""));
    const [posted] = calls.filter(({ method }) => method === "room.post");
    expect(posted?.params).toMatchObject({ text: "not so deep", deliver: "next_step" });
    happen(said(2, "user", "not so deep"), asked(2, "ann", "t2"));
    happen(note("room.joined", { roomId: "team", number: 2, agentId: "ann", taskId: "t2" }));
    expect(await screen.findByText(/heard it and answers it with the one before/)).toBeTruthy();
  });

  test("keeps what could not be sent, and tries again with the same id", async () => {
    const user = userEvent.setup();
    let fails = true;
    const { calls } = stage([], () => {
      if (fails) throw new Error("The connection was lost.");
      return {} as never;
    });
    show();
    await user.type(field(), "hello{Enter}");
    expect((await screen.findByRole("alert")).textContent).toContain("Not sent. The connection was lost.");
    expect(field().value).toBe("hello");
    fails = false;
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => expect(field().value).toBe(""));
    const ids = calls.filter(({ method }) => method === "room.post").map(({ params }) => params.messageId);
    expect(ids).toHaveLength(2);
    expect(ids[0]).toBe(ids[1]);
  });

  test("leads to the members when somebody is meant who is not in the room", async () => {
    const user = userEvent.setup();
    stage([], () => {
      throw new RpcError(-32001, "Nobody in the room \"Team\" is called '@carol'.", { code: "unknown_member" });
    });
    show();
    await user.type(field(), "@carol hello{Enter}");
    const told = within(await screen.findByRole("alert"));
    await user.click(told.getByRole("button", { name: "Members" }));
    expect(screen.getByText("Add to the group")).toBeTruthy();
    expect(field().value).toBe("@carol hello");
  });

  test("gives another text another id, and does not say of it that it was not sent", async () => {
    const user = userEvent.setup();
    const { calls } = stage([], () => {
      throw new Error("No.");
    });
    show();
    await user.type(field(), "hello{Enter}");
    await screen.findByRole("alert");
    await user.type(field(), "!");
    expect(screen.queryByRole("alert")).toBeNull();
    await user.type(field(), "{Enter}");
    await waitFor(() => expect(calls.filter(({ method }) => method === "room.post")).toHaveLength(2));
    const ids = calls.filter(({ method }) => method === "room.post").map(({ params }) => params.messageId);
    expect(ids[0]).not.toBe(ids[1]);
  });

  test("keeps a draft while other rooms are looked at", async () => {
    const user = userEvent.setup();
    stage();
    const { unmount } = show();
    await user.type(field(), "half a thou");
    unmount();
    show();
    expect(field().value).toBe("half a thou");
  });

  test("offers the members after an @, and takes one with the keys", async () => {
    const user = userEvent.setup();
    stage();
    show();
    await user.type(field(), "ask @");
    const offers = () => screen.queryAllByRole("option").map((option) => option.textContent);
    expect(offers()).toEqual(["@ann ANN", "@bob BOB", "@all everyone in this room"]);
    await user.keyboard("{ArrowDown}");
    const active = screen.getByRole("option", { selected: true });
    expect(active.textContent).toBe("@bob BOB");
    expect(field().getAttribute("aria-activedescendant")).toBe(active.id);
    await user.keyboard("{Tab}");
    expect([field().value, offers()]).toEqual(["ask @bob ", []]);
    await user.keyboard("and @a{Escape}");
    expect([field().value, offers()]).toEqual(["ask @bob and @a", []]);
  });
});

describe("the list of chats", () => {
  test("says how the first agent is made while there is none, and not after that", () => {
    setStage([]);
    const { unmount } = renderAt("/s/default/chats", <ChatsView />);
    expect(screen.getByRole("button", { name: "Create the first agent" })).toBeTruthy();
    unmount();
    setStage([note("agent.created", { agentId: "ann", name: "Ann", description: "" })]);
    renderAt("/s/default/chats", <ChatsView />);
    expect(screen.getByText("No chats yet")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Create the first agent" })).toBeNull();
  });

  test("has the newest first, with what is unread", () => {
    stage([{ text: "one" }, { text: "two" }]);
    act(() => {
      const direct = { ...GROUP, roomId: "chat~bob", kind: "direct" as const, title: "", members: ["bob"] };
      usePage.setState(({ live }) => ({ live: reduce(live, [note("room.created", direct)]) }));
    });
    show("/s/default/chats");
    const links = within(screen.getByRole("list", { name: "Chats" })).getAllByRole("link");
    expect(links.map((link) => link.querySelector("bdi")?.textContent)).toEqual(["BOB", "The team"]);
    expect(links.map((link) => link.querySelector(".nav-badge")?.textContent)).toEqual([undefined, "2 unread"]);
  });

  test("opens a chat with an agent that is found by its name", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    const { history } = show("/s/default/chats");
    await user.click(screen.getByRole("button", { name: "New chat" }));
    await user.type(screen.getByRole("searchbox", { name: "Find an agent", hidden: true }), "bo");
    await user.click(screen.getByRole("radio", { hidden: true }));
    await user.click(screen.getByRole("button", { name: "Open the chat", hidden: true }));
    await waitFor(() => expect(history?.at(-1)).toBe("/s/default/chats/chat~bob"));
    expect(calls.find(({ method }) => method === "room.openChat")?.params).toMatchObject({ agentId: "bob" });
  });

  test("creates a group of several", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    const { history } = show("/s/default/chats");
    await user.click(screen.getByRole("button", { name: "New group" }));
    await user.type(screen.getByRole("textbox", { name: "Title", hidden: true }), "Both");
    for (const box of screen.getAllByRole("checkbox", { hidden: true })) await user.click(box);
    await user.click(screen.getByRole("button", { name: "Create the group", hidden: true }));
    await waitFor(() => expect(history?.at(-1)).toBe("/s/default/chats/new"));
    const asked = { members: ["ann", "bob"], title: "Both", hopLimit: 4, roomId: expect.stringMatching(/./) };
    expect(calls.find(({ method }) => method === "room.create")?.params).toMatchObject(asked);
  });

  test("asks before a member is taken out of a group", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    show();
    await user.click(screen.getByRole("button", { name: "Members" }));
    await user.click(screen.getByRole("button", { name: "Remove ann", hidden: true }));
    expect(calls.some(({ method }) => method === "room.removeMember")).toBe(false);
    await user.click(screen.getByRole("button", { name: "Remove", hidden: true }));
    expect(calls.at(-1)).toMatchObject({ method: "room.removeMember", params: { roomId: "team", agentId: "ann" } });
  });

  test("says in the question why a member was not taken out: what is behind it cannot be reached", async () => {
    stage();
    show();
    await userEvent.click(screen.getByRole("button", { name: "Members" }));
    await userEvent.click(screen.getByRole("button", { name: "Remove bob", hidden: true }));
    await userEvent.click(screen.getByRole("button", { name: "Remove", hidden: true }));
    const question = screen.getByRole("dialog", { hidden: true });
    expect(within(question).getByRole("heading", { name: /^Remove .*\?$/, hidden: true })).toBeTruthy();
    expect(await within(question).findByText("bob has left already.")).toBeTruthy();
  });
});
