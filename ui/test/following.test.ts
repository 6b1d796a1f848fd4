import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WebSocket as NodeWebSocket } from "ws";
import { Client } from "../src/client/client";
import { worldOf } from "../src/projection/snapshot";
import { follow } from "../src/state/following";
import { usePage } from "../src/state/page";
import { connectionChanged, replaceServer } from "../src/state/server";
import { TestServer } from "./server";
import { plain } from "./worlds";

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  const WebSocket = NodeWebSocket as unknown as typeof globalThis.WebSocket;
  const { url, token } = server;
  client = new Client({ url, token, WebSocket, retrySeconds: 0.05, maxRetrySeconds: 0.2, onState: connectionChanged });
  replaceServer(client);
});
afterAll(async () => {
  await follow(null);
  client.close();
  await server.remove();
});

function eventually(check: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 60_000, interval: 20 });
}

/** What is shown comes to be what a page would show that is opened now. */
function shownIsTrue(sessionId: string): Promise<void> {
  return eventually(async () => {
    const fresh = worldOf(await client.call("session.snapshot", { sessionId }));
    const { live } = usePage.getState();
    expect(live.seq).toBe(fresh.seq);
    expect(plain(live)).toEqual(plain(fresh));
  });
}

async function work(sessionId: string, name: string): Promise<void> {
  await client.call("async.createAgent", { sessionId, agentId: name, config: { description: name } });
  for (const prompt of ["one", "two", "three"])
    await client.call("async.sendTask", { sessionId, agentId: name, prompt });
  await client.call("mail.send", { sessionId, to: name, subject: "Hello", body: "How are you?" });
}

describe("a session that is followed", () => {
  test("is shown as it is, over any breaks of the connection and deaths of the server", async () => {
    const { sessionId } = await client.call("session.create");
    await work(sessionId, "ann");
    await follow(sessionId);
    await shownIsTrue(sessionId);
    for (const name of ["ben", "cid"]) {
      await work(sessionId, name);
      await server.kill(); // in the midst of it
      await server.start();
      await eventually(() => expect(usePage.getState().connection).toBe("open"));
      await shownIsTrue(sessionId);
    }
    expect(usePage.getState().live.agents.size).toBe(3);
  });

  test("is loaded anew if it was deleted and another has its id", async () => {
    const { sessionId, createdAt } = await client.call("session.create", { sessionId: "again" });
    await work(sessionId, "old");
    await follow(sessionId);
    await client.call("session.delete", { sessionId });
    await client.call("session.create", { sessionId });
    await client.call("async.createAgent", { sessionId, agentId: "new", config: { description: "new" } });
    await eventually(() => expect([...usePage.getState().live.agents.keys()]).toEqual(["new"]));
    expect(usePage.getState().createdAt).not.toBe(createdAt);
    await shownIsTrue(sessionId);
  });

  test("that is not there is a problem that the page tells", async () => {
    await follow("nowhere");
    expect(usePage.getState()).toMatchObject({ isLoaded: false, ended: { name: "RpcError" } });
  });
});
