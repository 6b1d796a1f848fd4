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

test("an answer that was cut keeps its parts while another continues it, also between its steps", () => {
  const result = { analysis: "", commentary: "", final: "Well, wh" };
  const continued = { agentId: "ann", taskId: "t", continuationId: "t~1", number: 1, result, cut: true };
  const kept = { earlier: [{ final: "Well, wh", continuesCut: false }], continuesCut: true };
  const streams = written(writing, [
    note("async.task.continuation", continued),
    note("async.task.delta", { ...STEP, taskId: "t~1", channel: "final", text: "y not" }),
  ]);
  expect([...streams.keys()]).toEqual(["t~1"]);
  expect(streams.get("t~1")).toMatchObject({ ...kept, final: "y not" });
  const between = written(streams, [note("step.finished", { ...STEP, taskId: "t~1", kind: "model", state: "done" })]);
  expect(between.get("t~1")).toMatchObject({ ...kept, final: "" });
  expect(written(between, [note("async.task.completed", { agentId: "ann", taskId: "t~1", result })]).size).toBe(0);
});

test("what turns out to be reasoning moves to the analysis, once", () => {
  const piece = (channel: "analysis" | "final", text: string, more = {}) =>
    note("async.task.delta", { ...STEP, channel, text, ...more });
  const streams = written(writing, [
    piece("analysis", ".", { analysisUntil: 4 }),
    piece("final", "It is ", { analysisUntil: 4 }),
    piece("final", "42", { analysisUntil: 4 }),
  ]);
  expect(streams.get("t")).toMatchObject({ analysis: "Well.", final: "It is 42" });
  const again = written(streams, [piece("final", "Anew", { attempt: 2 })]);
  expect(again.get("t")).toMatchObject({ analysis: "", final: "Anew", isReclassified: false });
});
