import { screen, act as settled } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { RpcError } from "../../src/client/client";
import { reduce } from "../../src/projection/reduce";
import { App } from "../../src/shell/App";
import { Frame } from "../../src/shell/Frame";
import { SessionPicker } from "../../src/shell/SessionPicker";
import { SessionsView } from "../../src/shell/SessionsView";
import { isLive, usePage } from "../../src/state/page";
import { useSeen } from "../../src/state/seen";
import { titlesOf } from "../../src/state/titles";
import { note, renderAt, setStage } from "./stage";

const KEPT = { sessionId: "kept", title: "The kept one", owner: "local", createdAt: 1, needs: [], agents: 3 };
const INFO = { version: "1", principal: "local", model: "m", sandbox: "none", maxFrameBytes: 1, startedAt: 1 };

test("a session is deleted only after a question that says what is lost", async () => {
  const { calls } = setStage([], {
    "session.delete": () => KEPT,
    "session.list": () => ({ sessions: deletions().length === 0 ? [KEPT] : [] }),
    "server.info": () => INFO,
  });
  const deletions = () => calls.filter(({ method }) => method === "session.delete");
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  await userEvent.click(screen.getByRole("button", { name: "Delete The kept one" }));
  expect(screen.getByText(/Its 3 agents are stopped/)).toBeTruthy();
  expect(deletions()).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Delete for good", hidden: true }));
  expect(deletions()).toEqual([{ method: "session.delete", params: { sessionId: "kept" } }]);
  expect(await screen.findByText("No sessions yet.")).toBeTruthy();
});

test("a session is made once, however often the button is pressed", async () => {
  let made = (_: object) => {};
  const { calls } = setStage([], {
    "session.create": () =>
      new Promise((resolve) => {
        made = resolve;
      }) as never,
    "session.list": () => ({ sessions: [KEPT] }),
    "server.info": () => INFO,
  });
  usePage.setState({ sessions: [KEPT], sessionId: null });
  const { history } = renderAt("/sessions", <SessionsView />);
  await userEvent.dblClick(screen.getByRole("button", { name: "Create" }));
  await settled(async () => made({ ...KEPT, sessionId: "made" }));
  expect(history.at(-1)).toBe("/s/made");
  expect(calls.filter(({ method }) => method === "session.create")).toHaveLength(1);
});

const NODE = {
  name: "a",
  address: "http://10.0.0.5:8642",
  state: "joined" as const,
  version: "1",
  sandbox: "landlock",
  serves: true,
  sessions: 2,
  startedAt: 1,
  isThis: true,
  hasSameSettings: true,
  lagSeconds: 0,
  busy: 0,
  tags: [],
};

test("the nodes that share the sessions are shown, one is drained after a question, and a session is moved", async () => {
  let nodes = [NODE, { ...NODE, name: "b", isThis: false, hasSameSettings: false, sessions: 1, tags: ["gpu"] }];
  const { calls } = setStage([], {
    "cluster.status": () => ({ clusterId: "c", minVersion: "0", nodes, waiting: 1, ray: null, unmet: [] }),
    "cluster.drain": () => ({ clusterId: "c", minVersion: "0", nodes, waiting: 1, ray: null, unmet: [] }),
    "cluster.move": () => ({ sessionId: "kept", node: "b", address: "", epoch: 2 }),
    "session.list": () => ({ sessions: [KEPT] }),
    "server.info": () => INFO,
  });
  const made = (method: string) => calls.filter((each) => each.method === method).map(({ params }) => params);
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  const first = await screen.findByRole("article", { name: "Node a" });
  expect(first.textContent).toMatch(/joined this page.*sandbox landlock.*2 sessions/);
  expect(screen.getByRole("article", { name: "Node b" }).textContent).toMatch(/1 session, tags gpu/);
  expect(screen.getByText("1 session with work waits for a node.")).toBeTruthy();
  expect(screen.getByText(/settings are not those of this node/)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Move The kept one" }));
  await userEvent.click(screen.getByRole("button", { name: "Move", hidden: true }));
  expect(made("cluster.move")).toEqual([{ sessionId: "kept", node: "b" }]);
  expect(await screen.findByText("The kept one is at b now.")).toBeTruthy();
  await userEvent.click(screen.getAllByRole("button", { name: "Drain" })[1] as HTMLElement);
  expect(made("cluster.drain")).toEqual([]);
  nodes = [NODE, { ...NODE, name: "b", isThis: false, state: "draining" as never, sessions: 0 }];
  await userEvent.click(screen.getAllByRole("button", { name: "Drain", hidden: true }).at(-1) as HTMLElement);
  expect(made("cluster.drain")).toEqual([{ node: "b" }]);
  await vi.waitFor(() => expect(screen.getByRole("article", { name: "Node b" }).textContent).toMatch(/draining/), 5000);
  expect(screen.queryByRole("button", { name: "Move The kept one" })).toBeNull();
});

test("a server with a data folder of its own has no nodes to show", async () => {
  const refuse = () => {
    throw new RpcError(-32009, "This server is no cluster.", { code: "no_cluster" });
  };
  setStage([], { "cluster.status": refuse, "session.list": () => ({ sessions: [KEPT] }), "server.info": () => INFO });
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  await settled(async () => {});
  expect(screen.queryByText("Nodes")).toBeNull();
  expect(screen.queryByRole("button", { name: /Move/ })).toBeNull();
});

test("sessions of one title, as forks of a session are, are told apart by their ids", () => {
  const named = (sessionId: string, title: string) => ({ ...KEPT, sessionId, title });
  const titles = titlesOf([named("a", "Paid"), named("b", "Paid"), named("c", "Sent"), named("d", ""), named("e", "")]);
  expect([...titles.values()]).toEqual(["Paid (a)", "Paid (b)", "Sent", "d", "e"]);
  setStage([]);
  usePage.setState({ sessions: [named("a", "Paid"), named("b", "Paid")], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  expect(screen.getByRole("button", { name: "Delete Paid (b)" })).toBeTruthy();
  expect(screen.getByRole("link", { name: "Compare Paid (b) with another" }).getAttribute("href")).toBe("/s/b/compare");
});

test("each session leads to its fleet", () => {
  setStage([]);
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  expect(screen.getByRole("link", { name: /The kept one/ }).getAttribute("href")).toBe("/s/kept");
});

test("the list is read again when it is gone to", async () => {
  const later = { ...KEPT, sessionId: "later", title: "A later one" };
  setStage([], { "session.list": () => ({ sessions: [KEPT, later] }), "server.info": () => INFO });
  usePage.setState({ sessions: [KEPT], sessionId: null });
  renderAt("/sessions", <SessionsView />);
  expect(await screen.findByText("A later one")).toBeTruthy();
});

test("the picker shows the session that is followed, also one that is not in its list", () => {
  setStage([]);
  usePage.setState({ sessions: [KEPT], sessionId: "unlisted" });
  renderAt("/s/unlisted", <SessionPicker />);
  expect((screen.getByRole("combobox", { name: "Session" }) as HTMLSelectElement).value).toBe("unlisted");
});

test("a session that was deleted is not shown as live, and the way to the others is", () => {
  setStage([note("agent.created", { agentId: "ann", name: "Ann", description: "" })]);
  usePage.setState({ ended: new RpcError(-32004, "There is no session.", { code: "unknown_session" }) });
  renderAt("/s/default", <App />);
  expect(screen.getByRole("alert").textContent).toMatch(/This session was deleted/);
  expect(screen.getByRole("link", { name: "See all sessions" }).getAttribute("href")).toBe("/sessions");
  expect(screen.queryByText("Ann")).toBeNull();
  expect(screen.queryByText("live")).toBeNull();
  expect(isLive(usePage.getState())).toBe(false);
});

test("that no AI answers is told of the scripted model only", () => {
  setStage([]);
  renderAt("/s/default", <Frame>.</Frame>);
  const told = (model: string) => {
    settled(() => usePage.setState({ server: { ...INFO, model } }));
    return screen.queryByText(/scripted model/)?.textContent;
  };
  expect(told("scripted")).toBe("scripted model: no AI answers here");
  expect(told("scripted:rules.yaml")).toBe("scripted model: no AI answers here");
  expect(told("openai:gpt-5")).toBeUndefined();
});

test("in a browser that shows a session for the first time only what comes from then on is unread", () => {
  localStorage.clear();
  useSeen.setState({ seen: {} });
  const room = { roomId: "team", kind: "group" as const, title: "", members: ["ann"], hopLimit: 4 };
  const message = { roomId: "team", messageId: "m", sender: "ann", text: "", taskId: null, mentions: [], hops: 0 };
  setStage([note("room.created", room), note("room.message", { ...message, number: 1 })]);
  renderAt("/s/default", <Frame>.</Frame>);
  expect(screen.getByRole("link", { name: "Chats" })).toBeTruthy();
  const fresh = note("room.message", { ...message, number: 2 });
  settled(() => usePage.setState(({ live }) => ({ live: reduce(live, [fresh]) })));
  expect(screen.getByRole("link", { name: /Chats/ }).textContent).toBe("Chats1");
});
