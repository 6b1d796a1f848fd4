import { expect, test } from "vitest";
import { written } from "../../src/state/streams";
import { note } from "./stage";

const STEP = { agentId: "ann", taskId: "t", stepId: "s", attempt: 1 };
const writing = written(new Map(), [note("async.task.delta", { ...STEP, channel: "final", text: "Well" })]);

test("what an agent writes is kept while it writes", () => {
  expect(writing.get("t")?.final).toBe("Well");
});

test("an agent that was interrupted writes no more", () => {
  expect(written(writing, [note("step.interrupted", STEP)]).size).toBe(0);
});

test("nobody writes any more when the session was opened again", () => {
  expect(written(writing, [note("session.opened", {})]).size).toBe(0);
});
