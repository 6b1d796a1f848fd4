import { afterAll, beforeAll, describe, expect, expectTypeOf, onTestFinished, test, vi } from "vitest";
import { WebSocket as NodeWebSocket } from "ws";
import {
  Client,
  type ClientOptions,
  ConnectionLostError,
  type ConnectionState,
  type Notification,
  RefusedError,
  RpcError,
} from "../src/client/client";
import { TestServer } from "./server";

const WebSocket = NodeWebSocket as unknown as typeof globalThis.WebSocket; // it has all that the client needs

let server: TestServer;

beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.remove());

function connect(options: Partial<ClientOptions> = {}): Client {
  const client = new Client({ url: server.url, token: server.token, WebSocket, retrySeconds: 0.05, ...options });
  onTestFinished(() => client.close());
  return client;
}

/** A client, and what the state of its connection was, in order. */
function watched(options: Partial<ClientOptions> = {}) {
  const states: ConnectionState[] = [];
  const errors: (Error | undefined)[] = [];
  const client = connect({
    ...options,
    onState: (state, error) => {
      states.push(state);
      errors.push(error);
    },
  });
  return { client, states, errors };
}

function eventually(check: () => void): Promise<void> {
  return vi.waitFor(check, { timeout: 60_000, interval: 10 });
}

/** A WebSocket that can be cut, and kept from coming back. */
function cuttable() {
  const line = { isDown: false, cut: () => {} };
  class Cuttable extends NodeWebSocket {
    constructor(url: string) {
      super(line.isDown ? "ws://127.0.0.1:9" : url);
      line.cut = () => this.terminate();
    }
  }
  return { line, WebSocket: Cuttable as unknown as typeof globalThis.WebSocket };
}

async function newSession(client: Client): Promise<string> {
  const { sessionId } = await client.call("session.create");
  await client.call("async.createAgent", { sessionId, agentId: "alice", config: { prompt: "Answer." } });
  return sessionId;
}

async function doTasks(client: Client, sessionId: string, count: number): Promise<void> {
  const sent = Array.from({ length: count }, (_, number) =>
    client.call("async.sendTask", { sessionId, agentId: "alice", prompt: `Task ${number}` }),
  );
  for (const { taskId } of await Promise.all(sent)) await client.call("task.wait", { sessionId, taskId });
}

async function wholeLog(client: Client, sessionId: string): Promise<Notification[]> {
  const { notifications, lastSeq } = await client.call("events.list", { sessionId, limit: 1000 });
  expect(notifications).toHaveLength(lastSeq);
  return notifications;
}

describe("calls", () => {
  test("are answered, typed by the name of the method", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    const task = await client.call("async.sendTask", { sessionId, agentId: "alice", prompt: "Say hello" });
    const done = await client.call("task.wait", { sessionId, taskId: task.taskId });
    expect(done.state).toBe("completed");
    expectTypeOf(done.result).toEqualTypeOf<{
      analysis: string;
      commentary: string;
      final: string;
      output: unknown;
    } | null>();
    const { agents } = await client.call("async.getAgentStates", { sessionId });
    expect(agents.alice?.queue_size).toBe(0);
  });

  test("that do not fit the types do not compile", () => {
    const client = connect();
    // @ts-expect-error there is no such method
    const unknown = () => client.call("async.sendTasks", {});
    // @ts-expect-error the prompt is missing
    const missing = () => client.call("async.sendTask", { sessionId: "default", agentId: "alice" });
    // @ts-expect-error params that must be given cannot be left out
    const none = () => client.call("session.get");
    expect([unknown, missing, none]).toHaveLength(3);
  });

  test("made while connecting wait for the connection, and keep their order", async () => {
    const client = connect();
    expect(client.state).toBe("connecting");
    const sessionId = "default";
    const created = client.call("async.createAgent", { sessionId, agentId: "early", config: { prompt: "Answer." } });
    const sent = client.call("async.sendTask", { sessionId, agentId: "early", prompt: "Say hello" });
    expect((await created).agentId).toBe("early");
    expect((await sent).agentId).toBe("early");
  });

  test("that the server refuses fail with its code, its message and its data", async () => {
    const error = await connect()
      .call("session.get", { sessionId: "nowhere" })
      .catch((each: unknown) => each);
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({ code: -32004, data: { code: "unknown_session", requestId: expect.any(String) } });
    expect((error as RpcError).message).toContain("nowhere");
  });

  test("of the wrong params fail with the field that is wrong", async () => {
    const wrong = { sessionId: "default", agentId: "alice", prompt: 5 as unknown as string };
    await expect(connect().call("async.sendTask", wrong)).rejects.toThrow(/prompt/);
  });

  test("are taken with the token in the address, and with a WebSocket address", async () => {
    const inAddress = new Client({ url: `${server.url}/?token=${server.token}`, WebSocket });
    onTestFinished(() => inAddress.close());
    const direct = connect({ url: `${server.url.replace("http", "ws")}/ws` });
    const [one, other] = await Promise.all([inAddress.call("server.info"), direct.call("server.info")]);
    expect(one).toEqual(other);
    expect(one.principal).toBe("local");
  });

  test("fail on a closed client", async () => {
    const client = connect();
    const waiting = client.call("server.info");
    client.close();
    await expect(waiting).rejects.toThrow("The client was closed. server.info was not sent.");
    await expect(client.call("server.info")).rejects.toBeInstanceOf(ConnectionLostError);
    expect(client.state).toBe("closed");
  });
});

describe("subscriptions", () => {
  test("from 0 hand out the whole log, in order, as it is kept", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    await doTasks(client, sessionId, 2);
    const notes: Notification[] = [];
    await client.subscribe(sessionId, { after: 0 }, (note) => notes.push(note));
    await doTasks(client, sessionId, 2);
    const log = await wholeLog(client, sessionId);
    await eventually(() => expect(notes).toHaveLength(log.length));
    expect(notes).toEqual(log);
    expect(notes.map((note) => note.seq)).toEqual(log.map((_, index) => index + 1));
  });

  test("tell by the name of a notification what its params are", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    const answers: string[] = [];
    await client.subscribe(sessionId, {}, (note) => {
      if (note.name === "async.task.completed") answers.push(note.params.result.final);
      // @ts-expect-error a mail has no result
      if (note.name === "mail.sent") answers.push(note.params.result.final);
    });
    await doTasks(client, sessionId, 1);
    await eventually(() => expect(answers).toHaveLength(1));
    expect(answers[0]).not.toBe("");
  });

  test("without a number begin now", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    const before = await wholeLog(client, sessionId);
    const notes: Notification[] = [];
    const subscription = await client.subscribe(sessionId, {}, (note) => notes.push(note));
    expect(subscription.cursor).toBe(before.length);
    await client.call("async.pauseAgent", { sessionId, agentId: "alice" });
    await eventually(() => expect(notes.length).toBeGreaterThan(0));
    expect(notes[0]?.seq).toBe(before.length + 1);
  });

  test("with deltas hand out the pieces of answers", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    const pieces: string[] = [];
    let answer: string | undefined;
    await client.subscribe(sessionId, { deltas: true }, (note) => {
      if (note.name === "async.task.delta" && note.params.channel === "final") pieces.push(note.params.text);
      if (note.name === "async.task.completed") answer = note.params.result.final;
    });
    await doTasks(client, sessionId, 1);
    await eventually(() => expect(answer).toBeDefined());
    expect(pieces.join("")).toBe(answer);
  });

  test("of a session that does not exist fail", async () => {
    const subscribed = connect().subscribe("nowhere", { after: 0 }, () => {});
    await expect(subscribed).rejects.toMatchObject({ name: "RpcError", code: -32004 });
  });

  test("end when their session is deleted", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    const ends: Error[] = [];
    const notes: Notification[] = [];
    const onEnd = (error: Error) => ends.push(error);
    await client.subscribe(sessionId, { after: 0, onEnd }, (note) => notes.push(note));
    const log = await wholeLog(client, sessionId);
    await client.call("session.delete", { sessionId });
    await eventually(() => expect(ends).toHaveLength(1));
    expect(ends[0]).toMatchObject({ name: "RpcError", code: -32004, data: { code: "unknown_session" } });
    expect(notes).toEqual(log);
    await client.call("session.create", { sessionId });
    await client.subscribe(sessionId, { after: 0 }, () => {}); // the id is free again
  });

  test.each([
    ["shorter", 1],
    ["longer", 4],
  ])("do not go on in another session of the same id, with a %s log", async (_, count) => {
    const client = connect();
    const sessionId = await newSession(client);
    await doTasks(client, sessionId, 1);
    const ends: Error[] = [];
    const notes: Notification[] = [];
    const onEnd = (error: Error) => ends.push(error);
    await client.subscribe(sessionId, { after: 0, onEnd }, (note) => notes.push(note));
    const log = await wholeLog(client, sessionId);
    await client.call("session.delete", { sessionId });
    await client.call("session.create", { sessionId });
    await client.call("async.createAgent", { sessionId, agentId: "alice", config: { prompt: "Answer." } });
    if (count > 1) await doTasks(client, sessionId, count);
    await eventually(() => expect(ends).toHaveLength(1));
    expect(ends[0]).toMatchObject({ name: "RpcError", code: -32004, data: { code: "unknown_session" } });
    expect(notes).toEqual(log);
  });

  test("are one for a session, until closed", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    const first: Notification[] = [];
    const again: Notification[] = [];
    const subscription = await client.subscribe(sessionId, {}, (note) => first.push(note));
    await expect(client.subscribe(sessionId, {}, () => {})).rejects.toThrow("Close it first");
    await client.call("async.pauseAgent", { sessionId, agentId: "alice" });
    const told = subscription.cursor;
    const closed = subscription.close();
    await client.subscribe(sessionId, { after: 0 }, (note) => again.push(note));
    await closed;
    await client.call("async.resumeAgent", { sessionId, agentId: "alice" });
    const log = await wholeLog(client, sessionId);
    await eventually(() => expect(again).toEqual(log));
    expect(first.every((note) => note.seq <= told)).toBe(true);
  });
});

describe("a server that dies and comes back", () => {
  test("leaves no gap and no repeat in a subscription", async () => {
    const { client, states } = watched();
    const sessionId = await newSession(client);
    const notes: Notification[] = [];
    await client.subscribe(sessionId, { after: 0 }, (note) => notes.push(note));
    for (const round of [1, 2]) {
      await doTasks(client, sessionId, 3);
      const cut = client.call("task.wait", {
        sessionId,
        taskId: (await client.call("async.sendTask", { sessionId, agentId: "alice", prompt: "Be cut off" })).taskId,
      });
      cut.catch(() => {});
      await server.kill();
      await eventually(() => expect(client.state).toBe("lost"));
      await server.start();
      await eventually(() => expect(client.state).toBe("open"));
      expect(states.filter((state) => state === "open")).toHaveLength(round + 1);
    }
    await doTasks(client, sessionId, 3);
    const log = await wholeLog(client, sessionId);
    await eventually(() => expect(notes).toHaveLength(log.length));
    expect(notes).toEqual(log);
  });

  test("fails the requests that it did not answer, and those made before it is back", async () => {
    const { client, states, errors } = watched();
    const sessionId = await newSession(client);
    await client.call("async.pauseAgent", { sessionId, agentId: "alice" });
    const { taskId } = await client.call("async.sendTask", { sessionId, agentId: "alice", prompt: "Wait" });
    const waiting = client.call("task.wait", { sessionId, taskId }).catch((error: unknown) => error);
    await server.kill();
    expect(await waiting).toMatchObject({ name: "ConnectionLostError", sent: true });
    expect(((await waiting) as Error).message).toContain("task.wait may or may not have been carried out");
    await expect(client.call("server.info")).rejects.toMatchObject({ name: "ConnectionLostError", sent: false });
    expect([...new Set(states)]).toEqual(["open", "lost"]); // how often it was tried again meanwhile does not matter
    expect(errors[1]).toBeInstanceOf(ConnectionLostError);
    await server.start();
    await eventually(() => expect(client.state).toBe("open"));
    expect((await client.call("task.get", { sessionId, taskId })).state).toBe("queued");
  });

  test("lets a subscription begin that was asked for in between", async () => {
    const client = connect();
    const sessionId = await newSession(client);
    await server.kill();
    await eventually(() => expect(client.state).toBe("lost"));
    const notes: Notification[] = [];
    const subscribing = client.subscribe(sessionId, { after: 0 }, (note) => notes.push(note));
    await server.start();
    await subscribing;
    const log = await wholeLog(client, sessionId);
    await eventually(() => expect(notes).toEqual(log));
  });
});

describe("a connection that breaks", () => {
  test("again and again leaves no gap and no repeat in a subscription", async () => {
    const { line, WebSocket } = cuttable();
    const { client, states } = watched({ WebSocket, retrySeconds: 0.001, maxRetrySeconds: 0.001 });
    const worker = connect();
    const sessionId = await newSession(worker);
    const notes: Notification[] = [];
    await client.subscribe(sessionId, { after: 0 }, (note) => {
      notes.push(note);
      if (note.seq % 10 === 0) line.cut();
    });
    for (let breaks = 1; breaks <= 5; breaks++) {
      await doTasks(worker, sessionId, 4);
      const log = await wholeLog(worker, sessionId);
      await eventually(() => expect(notes).toHaveLength(log.length));
      expect(notes).toEqual(log);
      expect(log.length).toBeGreaterThan(breaks * 10);
      await eventually(() => expect(states.filter((each) => each === "lost").length).toBeGreaterThanOrEqual(breaks));
    }
  });

  test("ends the subscription to a session that is gone when it is back", async () => {
    const { line, WebSocket } = cuttable();
    const client = connect({ WebSocket });
    const other = connect();
    const sessionId = await newSession(other);
    const ends: Error[] = [];
    await client.subscribe(sessionId, { after: 0, onEnd: (error) => ends.push(error) }, () => {});
    line.isDown = true;
    line.cut();
    await eventually(() => expect(client.state).toBe("lost"));
    await other.call("session.delete", { sessionId });
    line.isDown = false;
    await eventually(() => expect(ends).toHaveLength(1));
    expect(ends[0]).toMatchObject({ name: "RpcError", code: -32004 });
    await expect(client.subscribe(sessionId, {}, () => {})).rejects.toBeInstanceOf(RpcError);
  });
});

describe("a client that the server does not let in", () => {
  test("is refused, and told why", async () => {
    const { client, states, errors } = watched({ token: "wrong" });
    const subscribing = client.subscribe("default", { after: 0 }, () => {});
    await expect(client.call("server.info")).rejects.toThrow("The token is wrong.");
    await expect(subscribing).rejects.toBeInstanceOf(RefusedError);
    expect(errors[0]).toMatchObject({ name: "RefusedError", status: 401 });
    await expect(client.call("server.info")).rejects.toBeInstanceOf(RefusedError);
    expect(states).toEqual(["refused"]);
  });

  test("is told from one that cannot reach the server, which goes on trying", async () => {
    await server.kill();
    const { client, states } = watched();
    await expect(client.call("server.info")).rejects.toThrow(/cannot be reached.*server.info was not sent/);
    await eventually(() => expect(states.length).toBeGreaterThan(2));
    expect(new Set(states)).toEqual(new Set(["lost"]));
    await server.start();
    await eventually(() => expect(client.state).toBe("open"));
  });
});
