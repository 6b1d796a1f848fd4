import type { Notification } from "../client/client";
import type { Stream } from "./page";

const KEPT_OUTPUT = 20_000;
const ENDINGS = new Set([
  "step.finished",
  "step.retried",
  "step.interrupted",
  "async.task.completed",
  "async.task.continuation",
  "async.task.error",
  "async.task.cancelled",
  "async.task.restarting",
]);

type Streams = ReadonlyMap<string, Stream>;

/** What is being written after these notifications. */
export function written(before: Streams, notes: readonly Notification[]): Streams {
  let streams: Map<string, Stream> | null = null;
  for (const note of notes) {
    if (note.name === "async.task.delta" || note.name === "step.output") {
      streams ??= new Map(before);
      streams.set(note.params.taskId, longer(streams.get(note.params.taskId), note));
    } else if (note.name === "session.opened") {
      if ((streams ?? before).size > 0) streams = new Map(); // whatever wrote was cut off
    } else if (ENDINGS.has(note.name)) {
      const { taskId } = note.params as { taskId: string };
      if ((streams ?? before).has(taskId)) {
        streams ??= new Map(before);
        streams.delete(taskId);
      }
    }
  }
  return streams ?? before;
}

type Piece = Extract<Notification, { name: "async.task.delta" | "step.output" }>;

function longer(known: Stream | undefined, piece: Piece): Stream {
  const { agentId, taskId, stepId } = piece.params;
  const attempt = piece.name === "async.task.delta" ? piece.params.attempt : (known?.attempt ?? 0);
  const isSame = known?.stepId === stepId && known.attempt === attempt;
  const before = isSame ? known : { analysis: "", commentary: "", final: "", output: "" };
  const begun = { ...before, agentId, taskId, stepId, attempt };
  if (piece.name === "step.output")
    return { ...begun, output: (before.output + piece.params.text).slice(-KEPT_OUTPUT) };
  const { channel, text } = piece.params;
  return { ...begun, [channel]: before[channel] + text };
}
