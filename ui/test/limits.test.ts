import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { Client } from "../src/client/client";
import { aboutLimit, readLimit } from "../src/views/limits/names";
import { TestServer } from "./server";

const sessionId = "s";
let server: TestServer;
let client: Client;
let names: string[];

beforeAll(async () => {
  server = await TestServer.start();
  const options = { url: server.url, token: server.token };
  client = new Client({ ...options, WebSocket: WebSocket as unknown as typeof globalThis.WebSocket });
  await client.call("session.create", { sessionId });
  names = (await client.call("limits.get", { sessionId })).limits.map(({ name }) => name);
});
afterAll(async () => {
  client?.close();
  await server?.remove();
});

test("every limit of the server has a title and says what happens when it is reached", () => {
  expect(names.length).toBeGreaterThan(25);
  expect(names.filter((name) => aboutLimit(name).title === name || aboutLimit(name).outcome === "")).toEqual([]);
});

test("0 can be typed for a limit if the server takes it", async () => {
  const taken = async (name: string) =>
    client.call("limits.set", { sessionId, limits: { [name]: 0 } }).then(
      () => true,
      () => false,
    );
  for (const name of names) expect([name, readLimit(name, "0") === 0]).toEqual([name, await taken(name)]);
});
