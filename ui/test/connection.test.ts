import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Client, type Notification } from "../src/client/client";
import { Connection, type ConnectionState } from "../src/client/connection";

/** A WebSocket whose other end is the test. */
class FakeSocket {
  static all: FakeSocket[] = [];
  static get last(): FakeSocket {
    return FakeSocket.all.at(-1) as FakeSocket;
  }

  sent: { id: number; method: string; params: object }[] = [];
  onopen = () => {};
  onmessage = (_: { data: string }) => {};
  onclose = (_: { code: number; reason: string }) => {};

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  send(frame: string): void {
    this.sent.push(JSON.parse(frame));
  }

  close(): void {
    this.onclose({ code: 1000, reason: "" });
  }

  receive(message: object): void {
    this.onmessage({ data: JSON.stringify(message) });
  }

  tell(seq: number): void {
    const params = { sessionId: "s", seq, cause: "user", at: 0, agentId: "alice", reason: "" };
    this.receive({ jsonrpc: "2.0", method: "agent.started", params });
  }

  break(): void {
    this.onclose({ code: 1006, reason: "" });
  }
}

const WebSocket = FakeSocket as unknown as typeof globalThis.WebSocket;

beforeEach(() => {
  FakeSocket.all = [];
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(1);
  vi.stubGlobal("fetch", vi.fn().mockRejectedValue(new TypeError("unreachable")));
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

function connected(): { connection: Connection; states: ConnectionState[] } {
  const states: ConnectionState[] = [];
  const options = { url: "http://localhost:8642", WebSocket, retrySeconds: 1, maxRetrySeconds: 5 };
  const listener = { changed: (state: ConnectionState) => states.push(state), received: () => {} };
  return { connection: new Connection(options, listener), states };
}

/** How long it is until there is another attempt. */
async function secondsUntilNextAttempt(): Promise<number> {
  const before = FakeSocket.all.length;
  const began = Date.now();
  await vi.advanceTimersToNextTimerAsync();
  expect(FakeSocket.all).toHaveLength(before + 1);
  return (Date.now() - began) / 1000;
}

test("each attempt waits twice as long as the one before, up to a limit", async () => {
  connected();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 5; attempt++) {
    FakeSocket.last.break();
    await vi.advanceTimersByTimeAsync(0); // until it is known that the server did not refuse
    waits.push(await secondsUntilNextAttempt());
  }
  expect(waits).toEqual([1, 2, 4, 5, 5]);
});

test("a connection that worked is tried again soon", async () => {
  connected();
  for (let attempt = 0; attempt < 3; attempt++) {
    FakeSocket.last.onopen();
    FakeSocket.last.receive({});
    FakeSocket.last.break();
    expect(await secondsUntilNextAttempt()).toBe(1);
  }
});

test("a connection that breaks as soon as it is open is tried again later and later", async () => {
  connected();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 3; attempt++) {
    FakeSocket.last.onopen();
    FakeSocket.last.break();
    waits.push(await secondsUntilNextAttempt());
  }
  expect(waits).toEqual([1, 2, 4]);
});

test("a closed connection is not tried again", async () => {
  const { connection, states } = connected();
  FakeSocket.last.onopen();
  FakeSocket.last.break();
  connection.close();
  await vi.runAllTimersAsync();
  expect(FakeSocket.all).toHaveLength(1);
  expect(states).toEqual(["open", "lost", "closed"]);
});

test.each([401, 403, 421])("a connection that the server refuses with %i is not tried again", async (status) => {
  const { states } = connected();
  vi.stubGlobal("fetch", vi.fn().mockResolvedValue(new Response("The token is wrong.", { status })));
  FakeSocket.last.break();
  await vi.runAllTimersAsync();
  expect(FakeSocket.all).toHaveLength(1);
  expect(states).toEqual(["refused"]);
});

test("a connection that is closed while it is found out why it failed is not tried again", async () => {
  const { connection, states } = connected();
  FakeSocket.last.break();
  connection.close();
  await vi.runAllTimersAsync();
  expect(FakeSocket.all).toHaveLength(1);
  expect(states).toEqual(["closed"]);
});

test.each([
  ["http://127.0.0.1:8642", "ws://127.0.0.1:8642/ws?notifications=explicit"],
  ["http://127.0.0.1:8642/?token=t#top", "ws://127.0.0.1:8642/ws?token=t&notifications=explicit"],
  ["https://example.org/whisperer/", "wss://example.org/whisperer/ws?notifications=explicit"],
  ["wss://example.org/ws", "wss://example.org/ws?notifications=explicit"],
])("the server of %s is connected to at %s", (url, endpoint) => {
  new Connection({ url, WebSocket }, { changed: () => {}, received: () => {} });
  expect(FakeSocket.last.url).toBe(endpoint);
});

test("the token of the options goes before that of the address", () => {
  new Connection({ url: "http://h/?token=a", token: "b c", WebSocket }, { changed: () => {}, received: () => {} });
  expect(FakeSocket.last.url).toBe("ws://h/ws?token=b+c&notifications=explicit");
});

test("what comes twice is handed out once, and a new connection goes on after it", async () => {
  const client = new Client({ url: "http://h", WebSocket, retrySeconds: 1 });
  const notes: Notification[] = [];
  void client.subscribe("s", { after: 4 }, (note) => notes.push(note));
  await vi.advanceTimersByTimeAsync(0);
  FakeSocket.last.onopen();
  expect(FakeSocket.last.sent[0]?.params).toEqual({ sessionId: "s", after: 4, deltas: false });
  for (const seq of [4, 5, 6, 6, 5]) FakeSocket.last.tell(seq);
  FakeSocket.last.break();
  await secondsUntilNextAttempt();
  FakeSocket.last.onopen();
  expect(FakeSocket.last.sent[0]?.params).toEqual({ sessionId: "s", after: 6, deltas: false });
  for (const seq of [6, 7]) FakeSocket.last.tell(seq);
  expect(notes.map((note) => note.seq)).toEqual([5, 6, 7]);
});

test("what comes late on a connection that was given up is ignored", async () => {
  const client = new Client({ url: "http://h", WebSocket, retrySeconds: 1 });
  const notes: Notification[] = [];
  void client.subscribe("s", { after: 0 }, (note) => notes.push(note));
  await vi.advanceTimersByTimeAsync(0);
  const first = FakeSocket.last;
  first.onopen();
  first.break();
  await secondsUntilNextAttempt();
  FakeSocket.last.onopen();
  first.tell(9);
  FakeSocket.last.tell(1);
  expect(notes.map((note) => note.seq)).toEqual([1]);
});

test("what is on its way to a closed subscription is none of the next one", async () => {
  const client = new Client({ url: "http://h", WebSocket });
  const socket = FakeSocket.last;
  const notes: Notification[] = [];
  const answer = async (result: object) => {
    socket.receive({ jsonrpc: "2.0", id: socket.sent.at(-1)?.id, result });
    await vi.advanceTimersByTimeAsync(0);
  };
  socket.onopen();
  const subscribing = client.subscribe("s", { after: 100 }, () => {});
  await vi.advanceTimersByTimeAsync(0);
  await answer({ sessionId: "s", after: 100, lastSeq: 100 });
  void (await subscribing).close();
  void client.subscribe("s", { after: 0 }, (note) => notes.push(note));
  await vi.advanceTimersByTimeAsync(0);
  socket.tell(101);
  await answer({ sessionId: "s", after: 101, lastSeq: 101 });
  expect(socket.sent.map((each) => each.method)).toEqual([
    "events.subscribe",
    "events.unsubscribe",
    "events.subscribe",
  ]);
  socket.tell(1);
  expect(notes.map((note) => note.seq)).toEqual([1]);
});

describe("a session that is closed", () => {
  async function followed(onEnd: (error: Error) => void) {
    const client = new Client({ url: "http://h", WebSocket });
    const socket = FakeSocket.last;
    const notes: Notification[] = [];
    socket.onopen();
    const subscribing = client.subscribe("s", { after: 0, onEnd }, (note) => notes.push(note));
    await vi.advanceTimersByTimeAsync(0);
    const answer = (message: object) => socket.receive({ jsonrpc: "2.0", id: socket.sent.at(-1)?.id, ...message });
    answer({ result: { sessionId: "s", after: 0, lastSeq: 0, createdAt: 1 } });
    const subscription = await subscribing;
    socket.tell(1);
    const params = { sessionId: "s", seq: 0, cause: "", at: 0 };
    socket.receive({ jsonrpc: "2.0", method: "session.closed", params });
    return { socket, notes, answer, subscription };
  }

  test("is asked for again until the server says what became of it", async () => {
    const ends: Error[] = [];
    const { socket, notes, answer } = await followed((error) => ends.push(error));
    await vi.runAllTimersAsync();
    answer({ error: { code: -32009, message: "The server is shutting down.", data: { code: "closed" } } });
    await vi.runAllTimersAsync();
    answer({ result: { sessionId: "s", after: 1, lastSeq: 1, createdAt: 1 } });
    socket.tell(2);
    expect(socket.sent.map((each) => each.params)).toEqual(
      [0, 1, 1].map((after) => ({ sessionId: "s", after, deltas: false })),
    );
    expect(notes.map((note) => note.seq)).toEqual([1, 2]);
    expect(ends).toEqual([]);
  });

  test("is left alone once its subscription is closed", async () => {
    const { socket, subscription } = await followed(() => {});
    void subscription.close();
    await vi.runAllTimersAsync();
    expect(socket.sent.map((each) => each.method)).toEqual(["events.subscribe", "events.unsubscribe"]);
  });

  test("and made again hands out nothing of the other session, however close it comes to the answer", async () => {
    const ends: Error[] = [];
    const { socket, notes, answer } = await followed((error) => ends.push(error));
    await vi.runAllTimersAsync();
    answer({ result: { sessionId: "s", after: 1, lastSeq: 5, createdAt: 2 } });
    socket.tell(2);
    expect(notes.map((note) => note.seq)).toEqual([1]);
    expect(ends).toHaveLength(1);
    expect(socket.sent.at(-1)?.method).toBe("events.unsubscribe");
  });
});
