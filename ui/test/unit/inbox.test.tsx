import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Route } from "wouter";
import type { MailRecord, MailState, Params } from "../../src/client/client";
import { tell, usePage } from "../../src/state/page";
import InboxView from "../../src/views/inbox/InboxView";
import { conversation, neighbour } from "../../src/views/inbox/mails";
import { note, renderAt, setStage } from "./stage";

beforeAll(() => import("../../src/parts/markdown/Rendered"));
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(60);
  Object.assign(HTMLDialogElement.prototype, { showModal() {}, close() {} });
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

function mail(mailId: string, fields: Partial<MailRecord> = {}): MailRecord {
  return {
    ...{ sessionId: "default", mailId, threadId: "t", sender: "ann", sequence: 1, recipient: "user", arrival: 1 },
    ...{ subject: `About ${mailId}`, body: `Body of **${mailId}**`, cause: "", priority: "normal", replyTo: null },
    ...{
      state: "queued",
      taskId: null,
      createdAt: 1_000,
      readAt: null,
      awaited: false,
      origin: null,
      erasedAt: null,
      ...fields,
    },
  };
}

const MAILS = [
  mail("m3", { createdAt: 1_003, priority: "urgent", threadId: "t3" }),
  mail("m2", { createdAt: 1_002, state: "archived", threadId: "t2" }),
  mail("m1", { createdAt: 1_001 }),
];
const SENT = [mail("mine", { createdAt: 1_004, sender: "user", recipient: "ann", body: "My answer" })];

function stage(reply: (params: Params<"mail.reply">) => MailRecord = () => MAILS[0] as MailRecord) {
  const sent = ({ mailId, threadId, sender, sequence, recipient, subject, priority, replyTo }: MailRecord) =>
    note("mail.sent", { mailId, threadId, sender, sequence, recipient, subject, priority, replyTo });
  const became = (mailId: string, state: MailState) =>
    note("mail.state_changed", { agentId: "user", mailId, state, taskId: null });
  const notes = [
    note("agent.created", { agentId: "ann", name: "Ann", description: "" }),
    ...[...MAILS].reverse().map(sent),
    became("m2", "archived"),
  ];
  return setStage(notes, {
    "mail.list": ({ owner }) => ({ mails: owner === "user" ? MAILS : SENT }),
    "mail.mark": () => MAILS[0] as MailRecord,
    "mail.reply": reply,
    "mail.send": () => MAILS[0] as MailRecord,
  });
}

function show(address = "/s/default/inbox") {
  return renderAt(address, <Route path="/s/default/inbox/:item?" component={InboxView} />);
}

const subjects = () => screen.getAllByRole("listitem").map((item) => item.querySelector(".inbox-subject")?.textContent);

describe("the inbox", () => {
  test("has the newest first, unread ones marked, urgent ones named", () => {
    stage();
    show();
    expect(subjects()).toEqual(["About m3", "About m1"]);
    const [first] = screen.getAllByRole("link");
    expect(first?.className).toContain("panes-unread");
    expect(first?.textContent).toContain("urgent");
  });

  test("shows archived ones on request", async () => {
    stage();
    show("/s/default/inbox?show=archived");
    await waitFor(() => expect(subjects()).toEqual(["About m2"]));
  });

  test("opens a mail as Markdown, with what belongs to its thread, and marks it as read", async () => {
    const { calls } = stage();
    show("/s/default/inbox/m1");
    expect((await screen.findByText("m1")).tagName).toBe("STRONG");
    expect(await screen.findByText("My answer")).toBeTruthy();
    expect(screen.queryByText("m3")).toBeNull();
    const marks = calls.filter(({ method }) => method === "mail.mark");
    expect(marks.map(({ params }) => params)).toEqual([{ sessionId: "default", mailId: "m1", state: "read" }]);
  });

  test("shows what was just sent, also if the clock of this computer is behind that of the server", async () => {
    stage();
    vi.spyOn(Date, "now").mockReturnValue(900_000);
    show("/s/default/inbox/m1");
    expect(await screen.findByText("My answer")).toBeTruthy();
  });

  test("marks all mails of a thread as read that are shown with the one that is opened", async () => {
    const together = MAILS.map((each) => ({ ...each, threadId: "t" }));
    const { calls } = setStage(
      together.map(({ mailId, threadId, sender, sequence, recipient, subject, priority, replyTo }) =>
        note("mail.sent", { mailId, threadId, sender, sequence, recipient, subject, priority, replyTo }),
      ),
      { "mail.list": () => ({ mails: together }), "mail.mark": () => MAILS[0] as MailRecord },
    );
    show("/s/default/inbox/m1");
    await waitFor(() => {
      const marks = calls.filter(({ method }) => method === "mail.mark");
      expect(marks.map(({ params }) => params.mailId).sort()).toEqual(["m1", "m2", "m3"]);
    });
  });

  test("steps through the mails with j and k, but not while one writes", async () => {
    stage();
    const { history } = show();
    fireEvent.keyDown(document.body, { key: "j" });
    expect(history?.at(-1)).toBe("/s/default/inbox/m3");
    fireEvent.keyDown(document.body, { key: "j" });
    expect(history?.at(-1)).toBe("/s/default/inbox/m1");
    fireEvent.keyDown(document.body, { key: "k" });
    expect(history?.at(-1)).toBe("/s/default/inbox/m3");
    fireEvent.keyDown(await screen.findByRole("textbox"), { key: "j" });
    expect(history?.at(-1)).toBe("/s/default/inbox/m3");
  });

  test("archives a mail and goes back to the list", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    const { history } = show("/s/default/inbox/m1");
    await user.click(await screen.findByRole("button", { name: "Archive" }));
    await waitFor(() => expect(history?.at(-1)).toBe("/s/default/inbox"));
    expect(calls.some(({ params }) => params.mailId === "m1" && params.state === "archived")).toBe(true);
  });

  test("answers a mail, and keeps the answer that could not be sent, under the same id until it is", async () => {
    const user = userEvent.setup();
    let fails = true;
    const { calls } = stage(() => {
      if (fails) throw new Error("The agent's mailbox is full.");
      return MAILS[0] as MailRecord;
    });
    show("/s/default/inbox/m1");
    const field = await screen.findByRole<HTMLTextAreaElement>("textbox", { name: "Answer Ann" });
    await user.type(field, "Thanks");
    await user.click(screen.getByRole("button", { name: "Reply" }));
    expect((await screen.findByRole("alert")).textContent).toBe("Not sent. The agent's mailbox is full.");
    expect(field.value).toBe("Thanks");
    fails = false;
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => expect(field.value).toBe(""));
    const replies = () => calls.filter(({ method }) => method === "mail.reply").map(({ params }) => params);
    expect(replies()).toMatchObject([
      { mailId: "m1", body: "Thanks" },
      { mailId: "m1", body: "Thanks" },
    ]);
    expect(replies()[1]).toEqual(replies()[0]);
    await user.type(field, "Thanks");
    await user.click(screen.getByRole("button", { name: "Reply" }));
    await waitFor(() => expect(replies()).toHaveLength(3));
    expect(replies()[2]?.replyId).not.toBe(replies()[0]?.replyId);
  });

  test("does not say of an answer that was changed that it was not sent", async () => {
    stage(() => {
      throw new Error("The agent's mailbox is full.");
    });
    show("/s/default/inbox/m1");
    const field = await screen.findByRole("textbox", { name: "Answer Ann" });
    await userEvent.type(field, "Thanks");
    await userEvent.click(screen.getByRole("button", { name: "Reply" }));
    await screen.findByRole("alert");
    await userEvent.type(field, "!");
    expect(screen.queryByRole("alert")).toBeNull();
    expect(screen.getByRole("button", { name: "Reply" })).toBeTruthy();
  });

  test("writes a mail with a priority", async () => {
    const user = userEvent.setup();
    const { calls } = stage();
    show();
    await user.click(screen.getByRole("button", { name: "New mail" }));
    await user.click(screen.getByRole("radio", { hidden: true }));
    await user.type(screen.getByRole("textbox", { name: "Subject", hidden: true }), "Hello");
    await user.type(screen.getByRole("textbox", { name: "Text", hidden: true }), "Please look.");
    await user.selectOptions(screen.getByRole("combobox", { name: "Priority", hidden: true }), "high");
    await user.click(screen.getByRole("button", { name: "Send", hidden: true }));
    const sent = { to: "ann", subject: "Hello", body: "Please look.", priority: "high" };
    await waitFor(() => expect(calls.at(-1)).toMatchObject({ method: "mail.send", params: sent }));
  });

  test("shows no mail of the future, and in the archive only what was archived then", async () => {
    stage();
    const { live } = usePage.getState();
    const inbox = new Map([...live.inbox, ["m2", { mailId: "m2" } as never]]);
    usePage.setState({ playhead: { world: { ...live, inbox, at: 1_002 }, speed: 0 } });
    show("/s/default/inbox/m3?show=archived");
    expect(await screen.findByText("There was no such mail yet")).toBeTruthy();
    expect(screen.getByText("Nothing is archived")).toBeTruthy();
  });

  test("looks once for a mail that is not among the newest", async () => {
    const many = Array.from({ length: 300 }, (_, index) => mail(`x${index}`));
    const { calls } = setStage([], { "mail.list": ({ limit }) => ({ mails: many.slice(0, limit) }) });
    show("/s/default/inbox/gone");
    expect(await screen.findByText("There is no such mail")).toBeTruthy();
    const sent = { mailId: "y", threadId: "y", sender: "ann", sequence: 1, recipient: "user", subject: "" };
    act(() => tell([note("mail.sent", { ...sent, priority: "normal", replyTo: null })]));
    await waitFor(() => expect(calls).toHaveLength(3));
    expect(calls.map(({ params }) => params.limit)).toEqual([200, 10_000, 200]);
    cleanup();
    show("/s/default/inbox/x299");
    expect((await screen.findAllByText("About x299")).length).toBeGreaterThan(0);
  });

  test("says so when a mail is not there", async () => {
    stage();
    show("/s/default/inbox/gone");
    expect(await screen.findByText("There is no such mail")).toBeTruthy();
  });
});

test("a conversation has the user's mails of one thread up to a time, the oldest first", () => {
  const foreign = mail("x", { sender: "ann", recipient: "bob" });
  expect(conversation("t", 1_003, MAILS, [...SENT, foreign]).map(({ mailId }) => mailId)).toEqual(["m1"]);
  expect(conversation("t", 1_004, MAILS, SENT, SENT).map(({ mailId }) => mailId)).toEqual(["m1", "mine"]);
});

test("the neighbour of the last mail is itself", () => {
  const lines = MAILS.map(({ createdAt, ...each }) => ({ ...each, at: createdAt, isRead: true }));
  expect([neighbour(lines, "m1", 1), neighbour(lines, "m3", -1), neighbour(lines, undefined, 1)]).toEqual([
    "m1",
    "m3",
    "m3",
  ]);
});
