import { createRequire } from "node:module";
import { Ajv, type AnySchemaObject } from "ajv";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { Client, type MethodName } from "../src/client/client";
import { TestServer } from "./server";

const require = createRequire(import.meta.url); // the types of these packages do not tell that they hold a schema
const OPEN_RPC: AnySchemaObject = require("@open-rpc/meta-schema").default;
const JSON_SCHEMA: AnySchemaObject = require("@json-schema-tools/meta-schema").default;

interface Described {
  methods: { name: string; result: { schema: AnySchemaObject } }[];
  components: { schemas: Record<string, AnySchemaObject> };
}

let server: TestServer;
let client: Client;
let document: Described;

beforeAll(async () => {
  server = await TestServer.start();
  client = new Client({
    url: server.url,
    token: server.token,
    WebSocket: WebSocket as unknown as typeof globalThis.WebSocket,
  });
  document = (await client.call("rpc.discover")) as unknown as Described;
});
afterAll(async () => {
  client?.close();
  await server?.remove();
});

const ajv = new Ajv({ strict: false, validateSchema: false, validateFormats: false, allErrors: true });
ajv.addSchema(JSON_SCHEMA);
ajv.addSchema({ $ref: JSON_SCHEMA.$id }, "https://meta.json-schema.tools"); // OpenRPC names it without the last sign

/** What is wrong with the value by the schema, if anything. */
function complaints(schema: AnySchemaObject, value: unknown): string[] {
  const validate = ajv.compile(schema);
  validate(value);
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
}

test("what rpc.discover answers is OpenRPC by the meta-schema", () => {
  expect(complaints(OPEN_RPC, document)).toEqual([]);
});

test("the meta-schema would find what is not OpenRPC", () => {
  const [first, ...rest] = document.methods;
  const broken = { ...document, methods: [{ ...first, params: [{ name: "sessionId" }] }, ...rest] };
  expect(complaints(OPEN_RPC, broken)).not.toEqual([]);
});

/** One of each method, in an order in which they can be answered. */
function* calls(): Generator<[MethodName, object?]> {
  const [sessionId, agentId, taskId, roomId, scheduleId] = ["s", "alice", "t", "r", "every-hour"];
  yield ["session.create", { sessionId }];
  yield ["session.list"];
  yield ["session.get", { sessionId }];
  yield ["events.subscribe", { sessionId, after: 0 }];
  yield ["async.createAgent", { sessionId, agentId, autoStart: false }];
  yield ["async.startAgent", { sessionId, agentId }];
  yield ["async.sendTask", { sessionId, agentId, taskId, prompt: "Say hello" }];
  yield ["task.wait", { sessionId, taskId }];
  yield ["task.get", { sessionId, taskId }];
  yield ["task.tree", { sessionId, taskId }];
  yield ["task.steps", { sessionId, taskId }];
  yield ["task.threads", { sessionId, agentId }];
  yield ["context.get", { sessionId, agentId, threadId: taskId }];
  yield ["context.compact", { sessionId, agentId, threadId: taskId, taskId: "shorter" }];
  yield ["task.wait", { sessionId, taskId: "shorter" }];
  yield ["async.interruptAgent", { sessionId, agentId }];
  yield ["async.resumeAgent", { sessionId, agentId }];
  yield ["async.pauseAgent", { sessionId, agentId }];
  yield ["async.sendTask", { sessionId, agentId, taskId: "u", prompt: "Say hello", budget: { maxTokens: 9 } }];
  yield ["task.cancel", { sessionId, taskId: "u" }];
  yield ["task.retry", { sessionId, taskId: "u" }];
  yield ["task.cancelTree", { sessionId, taskId: "u" }];
  yield ["task.list", { sessionId }];
  yield ["task.retryFailed", { sessionId }];
  yield ["task.deadLetters", { sessionId }];
  yield ["mail.send", { sessionId, to: agentId, subject: "Hello", body: "How are you?" }];
  yield ["mail.sendMany", { sessionId, mails: [{ to: agentId, subject: "Hello", body: "Again", mailId: "many-1" }] }];
  yield ["mail.list", { sessionId, owner: agentId }];
  yield ["mail.listSent", { sessionId, owner: "user" }];
  yield ["room.create", { sessionId, members: [agentId], roomId }];
  yield ["async.createAgent", { sessionId, agentId: "coder" }];
  yield ["room.addMember", { sessionId, roomId, agentId: "coder" }];
  const parts = [{ data: "aGVsbG8=", name: "hello.txt" }];
  yield ["room.post", { sessionId, roomId, text: "Hello", parts }];
  yield ["attachment.list", { sessionId }];
  const digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"; // of "hello"
  yield ["attachment.get", { sessionId, digest }];
  yield ["memory.list", { sessionId, agentId }];
  yield ["room.messages", { sessionId, roomId }];
  yield ["room.removeMember", { sessionId, roomId, agentId: "coder" }];
  yield ["room.openChat", { sessionId, agentId }];
  yield ["room.get", { sessionId, roomId }];
  yield ["room.list", { sessionId }];
  yield ["schedule.create", { sessionId, scheduleId, intervalSeconds: 3600, event: "hour" }];
  yield ["schedule.pause", { sessionId, scheduleId }];
  yield ["schedule.resume", { sessionId, scheduleId }];
  yield ["schedule.get", { sessionId, scheduleId }];
  yield ["schedule.list", { sessionId }];
  yield ["schedule.delete", { sessionId, scheduleId }];
  yield ["mcp.list", { sessionId }];
  yield ["providers.list", { sessionId }];
  yield ["async.resumeAgent", { sessionId, agentId }];
  yield ["async.stopAgent", { sessionId, agentId }];
  yield ["async.startAgent", { sessionId, agentId: "sleeper", config: { prompt: "Sleep." } }];
  yield ["async.sleepAgent", { sessionId, agentId: "sleeper", wakeEvents: ["morning"] }];
  yield ["async.wakeAgent", { sessionId, agentId: "sleeper" }];
  yield ["async.broadcastEvent", { sessionId, event: "morning", data: { light: true } }];
  yield ["async.listEvents", { sessionId }];
  yield ["async.getAgentStates", { sessionId }];
  yield ["agent.get", { sessionId, agentId }];
  yield ["lock.acquire", { sessionId, name: "door", ttlSeconds: 60 }];
  yield ["lock.renew", { sessionId, name: "door", token: 1, ttlSeconds: 90 }];
  yield ["lock.check", { sessionId, name: "door", token: 1 }];
  yield ["lock.list", { sessionId }];
  yield ["lock.release", { sessionId, name: "door", token: 1 }];
  yield ["lock.acquire", { sessionId, name: "door", ttlSeconds: 60 }];
  yield ["lock.break", { sessionId, name: "door" }];
  yield ["resource.list", { sessionId }];
  yield ["limits.set", { sessionId, limits: { max_queue_length: 50 } }];
  yield ["limits.get", { sessionId, agentId }];
  yield ["approval.list", { sessionId }];
  yield ["question.list", { sessionId }];
  yield ["tool.list"];
  yield ["usage.get", { sessionId }];
  yield ["events.list", { sessionId }];
  yield ["session.snapshot", { sessionId }];
  yield ["session.findIds", { sessionId, kind: "task", beginning: "t" }];
  yield ["session.forkPoints", { sessionId, near: 1, limit: 1 }];
  yield ["session.fork", { sessionId, at: 1, newSessionId: "forked" }];
  yield ["session.compare", { sessionId, otherSessionId: "forked" }];
  yield ["events.unsubscribe", { sessionId }];
  yield ["template.list"];
  yield ["template.get", { name: agentId }];
  yield ["server.info"];
  yield ["rpc.discover"];
  yield ["session.storage", { sessionId }];
  yield ["session.prune", { sessionId, olderThan: "30d", dryRun: true }];
  yield ["task.deleteThread", { sessionId, agentId, threadId: taskId }];
  yield ["room.delete", { sessionId, roomId }];
  yield ["async.deleteAgent", { sessionId, agentId: "coder" }];
  yield ["session.delete", { sessionId }];
}

/** These need a call that waits for a person, an agent that writes a log, or to the user, an MCP server, a cluster, or a file. */
const NOT_CALLED = [
  "approval.approve",
  "approval.get",
  "approval.refuse",
  "cluster.drain",
  "cluster.move",
  "cluster.status",
  "log.read",
  "mail.mark",
  "mail.reply",
  "mcp.start",
  "memory.read",
  "question.answer",
  "question.get",
  "question.refuse",
  "session.import",
  "session.setNeeds",
  "task.dismiss",
];

test("every method answers what the document says", async () => {
  const called = new Set<string>();
  for (const [method, params] of calls()) {
    const result = await client.call(method as "rpc.discover", params as never);
    const schema = document.methods.find((each) => each.name === method)?.result.schema;
    const problems = complaints({ ...schema, components: document.components }, result);
    expect({ method, problems }).toEqual({ method, problems: [] });
    called.add(method);
  }
  const methods = document.methods.map((each) => each.name);
  expect(methods.filter((each) => !called.has(each)).sort()).toEqual(NOT_CALLED);
});
