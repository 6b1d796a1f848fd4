import { expect, test } from "vitest";
import told from "../../../tests/unit/told.json";
import type { Notification } from "../../src/client/client";
import { agentOf, telling } from "../../src/history/telling";
import { note } from "./stage";

test("a mail is told with who sent it to whom, and a reply as one", () => {
  const mail = {
    mailId: "m",
    threadId: "t",
    sender: "alice",
    sequence: 1,
    recipient: "debbie",
    subject: "Who is stuck?",
  };
  const sent = note("mail.sent", { ...mail, priority: "normal", replyTo: null });
  expect(telling(sent)).toBe("alice mailed debbie: Who is stuck?");
  expect(telling(note("mail.sent", { ...mail, priority: "normal", replyTo: "m0" }))).toBe(
    "alice replied to debbie: Who is stuck?",
  );
  expect(agentOf(sent)).toBe("alice");
});

test("agents are told by the names that people know them by", () => {
  const began = note("switch.began", {
    agentId: "a1",
    taskId: "t",
    stepId: "t.1",
    toAgent: "a2",
    mailId: "m",
    depth: 2,
    deadlineAt: 0,
  });
  const names: Record<string, string> = { a1: "Alice", a2: "Debbie" };
  expect(telling(began, (agentId) => names[agentId] ?? agentId)).toBe(
    "Alice asked Debbie and waits for the answer (depth 2)",
  );
});

test.each(
  told as unknown as [Notification["name"], object, string | null][],
)("%s is told as on the command line: %j", (name, params, wanted) => {
  expect(telling(note(name, params as never))).toBe(wanted ?? name.replaceAll(".", " "));
});

test("of many only the first are told", () => {
  const tools = ["a", "b", "c", "d", "e", "f", "g"];
  expect(telling(note("mcp.tools_missing", { agentId: "alice", tools }))).toBe(
    "alice lacks tools of MCP servers: a, b, c, d, e and 2 more",
  );
});

test("a long text of many lines becomes the beginning of one", () => {
  const summary = `first\n\nsecond ${"x".repeat(10_000)}`;
  const params = { agentId: "alice", taskId: "t", threadId: "t", kind: "user_prompt", priority: "urgent" } as const;
  const told = telling(note("async.task.queued", { ...params, summary }));
  expect(told).toContain("alice was given a task (user prompt, urgent priority): first second xxx");
  expect(told.length).toBeLessThan(220);
  expect(told.endsWith("…")).toBe(true);
});

test("a notification of a kind that this page does not know, or that lacks fields, is told by its name", () => {
  const strange = { ...note("agent.redefined", { agentId: "a" }), name: "agent.taught_juggling", params: {} };
  expect(telling(strange as unknown as Notification)).toBe("agent taught juggling");
  const old = { ...note("room.created", {} as never) };
  expect(telling(old)).toBe("room created");
});
