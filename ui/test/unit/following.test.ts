import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  ConnectionLostError,
  type Notification,
  RpcError,
  type Snapshot,
  type SubscribeOptions,
} from "../../src/client/client";
import { follow } from "../../src/state/following";
import { listen, NOTHING, usePage } from "../../src/state/page";
import { connectionChanged, replaceServer, type Server, server } from "../../src/state/server";

const NOTHING_YET: Snapshot = {
  ...{ lastSeq: 0, firstSeq: 1, at: 0, agents: [], tasks: [], waits: [], rooms: [], links: [], inbox: [], locks: [] },
  ...{ approvals: [], questions: [], schedules: [], clockOffsetSeconds: 0, deadTasks: 0, deadMails: 0 },
};

type Take = (note: Notification) => void;

/** A server of sessions, with the subscriptions that were made. */
function setServer(snapshot: () => Promise<Snapshot> = async () => NOTHING_YET) {
  const feeds: { sessionId: string; options: SubscribeOptions; take: Take }[] = [];
  replaceServer({
    call: async (method: string) => (method === "session.snapshot" ? snapshot() : { createdAt: 7, sessions: [] }),
    subscribe: async (sessionId: string, options: SubscribeOptions, take: Take) => {
      feeds.push({ sessionId, options, take });
      return { sessionId, cursor: 0, close: async () => {} };
    },
  } as unknown as Server);
  return feeds;
}

function created(seq: number): Notification {
  const params = { agentId: `a${seq}`, name: "", description: "" };
  return { seq, sessionId: "s", name: "agent.created", cause: "", at: seq, params };
}

beforeEach(() => {
  vi.useFakeTimers();
  usePage.setState(NOTHING);
});
afterEach(async () => {
  await follow(null);
  vi.useRealTimers();
});

describe("following a session", () => {
  test("begins after what the snapshot shows", async () => {
    const feeds = setServer(async () => ({ ...NOTHING_YET, lastSeq: 41 }));
    await follow("s");
    expect(feeds[0]?.options).toMatchObject({ after: 41, createdAt: 7, deltas: true });
    feeds[0]?.take(created(42));
    vi.advanceTimersByTime(50);
    expect(usePage.getState()).toMatchObject({ isLoaded: true, live: { seq: 42 } });
  });

  test("shows a thousand notifications a second twenty times a second", async () => {
    const feeds = setServer();
    await follow("s");
    let shown = 0;
    const leave = usePage.subscribe(({ live }, before) => {
      if (live !== before.live) shown += 1;
    });
    for (let seq = 1; seq <= 1_000; seq += 1) {
      feeds[0]?.take(created(seq));
      vi.advanceTimersByTime(1);
    }
    vi.advanceTimersByTime(50);
    leave();
    expect(usePage.getState().live.agents.size).toBe(1_000);
    expect(shown).toBeLessThanOrEqual(21);
  });

  test("takes a flood in pieces, in order, all of it", async () => {
    const feeds = setServer();
    await follow("s");
    const pieces: number[] = [];
    const told: number[] = [];
    const leave = listen((notes) => {
      pieces.push(notes.length);
      told.push(...notes.map(({ seq }) => seq));
    });
    for (let seq = 1; seq <= 10_000; seq += 1) feeds[0]?.take(created(seq));
    vi.advanceTimersByTime(100);
    leave();
    expect(Math.max(...pieces)).toBeLessThanOrEqual(1_000);
    expect(told).toEqual(Array.from({ length: 10_000 }, (_, index) => index + 1));
    expect(usePage.getState().live.seq).toBe(10_000);
  });

  test("loses nothing of what waits to be shown when the connection breaks", async () => {
    const feeds = setServer();
    await follow("s");
    feeds[0]?.take(created(1));
    connectionChanged("lost", new ConnectionLostError("The connection broke.", false));
    connectionChanged("open");
    feeds[0]?.take(created(2));
    vi.advanceTimersByTime(50);
    expect([...usePage.getState().live.agents.keys()]).toEqual(["a1", "a2"]);
  });

  test("lets nothing of the session before into the one that is shown", async () => {
    const feeds = setServer();
    await follow("s");
    feeds[0]?.take(created(1));
    await follow("t");
    feeds[0]?.take(created(2));
    feeds[1]?.take(created(3));
    vi.advanceTimersByTime(50);
    expect([...usePage.getState().live.agents.keys()]).toEqual(["a3"]);
  });

  test("is begun again when the connection broke while it was loaded", async () => {
    let isDown = true;
    const feeds = setServer(async () => {
      if (isDown) throw new ConnectionLostError("The connection broke.", true);
      return NOTHING_YET;
    });
    await follow("s");
    expect(usePage.getState().isLoaded).toBe(false);
    isDown = false;
    connectionChanged("open");
    await vi.waitFor(() => expect(feeds).toHaveLength(1));
    expect(usePage.getState()).toMatchObject({ isLoaded: true, problem: null });
  });

  test("of one that was chosen without a connection begins when there is one", async () => {
    const feeds = setServer();
    const whole = server();
    const none = () => Promise.reject(new ConnectionLostError("There is no connection.", false));
    replaceServer({ call: none, subscribe: none });
    connectionChanged("lost");
    await follow("s");
    expect(usePage.getState()).toMatchObject({ isLoaded: false, ended: null });
    replaceServer(whole);
    connectionChanged("open");
    await vi.waitFor(() => expect(feeds).toHaveLength(1));
    expect(usePage.getState()).toMatchObject({ isLoaded: true, sessionId: "s" });
  });

  test("ends with the session, which is told until another is followed", async () => {
    const feeds = setServer();
    await follow("s");
    const whole = server();
    const gone = new RpcError(-32004, "There is no session 's'.", { code: "unknown_session" });
    replaceServer({ ...whole, call: () => Promise.reject(gone) });
    feeds[0]?.options.onEnd?.(gone);
    await vi.waitFor(() => expect(usePage.getState().ended).toBe(gone));
    connectionChanged("open");
    expect(usePage.getState().ended).toBe(gone);
    replaceServer(whole);
    await follow("t");
    expect(usePage.getState()).toMatchObject({ isLoaded: true, ended: null });
  });

  test("of one that the list does not have reads the list again", async () => {
    setServer();
    usePage.setState({
      sessions: [{ sessionId: "old", title: "", owner: "local", createdAt: 1, needs: [], agents: 0 }],
    });
    await follow("s");
    await vi.waitFor(() => expect(usePage.getState().sessions).toEqual([]));
  });

  test("takes all that waits at once while nobody looks, since timers are slow then", async () => {
    const feeds = setServer();
    await follow("s");
    const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
    for (let seq = 1; seq <= 10_000; seq += 1) feeds[0]?.take(created(seq));
    vi.advanceTimersToNextTimer();
    hidden.mockRestore();
    expect(usePage.getState().live.seq).toBe(10_000);
  });
});

test("what was pruned while the page was away lets it begin anew with a snapshot", async () => {
  let taken = 0;
  const feeds = setServer(async () => {
    taken += 1;
    return { ...NOTHING_YET, lastSeq: 10 * taken, firstSeq: taken === 1 ? 1 : 15 };
  });
  await follow("pruned");
  feeds.at(-1)?.take({ seq: 0, sessionId: "pruned", name: "log.skipped", cause: "", at: 1, params: { firstSeq: 15 } });
  await vi.waitFor(() => expect(feeds.at(-1)?.options.after).toBe(20));
  expect(usePage.getState()).toMatchObject({ firstSeq: 15, base: { seq: 20 }, live: { seq: 20 } });
  await follow(null);
});
