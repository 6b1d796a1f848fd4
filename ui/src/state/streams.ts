import type { Notification } from "../client/client";
import type { Stream } from "./page";

const KEPT_OUTPUT = 20_000;
const STEP_ENDINGS = new Set(["step.finished", "step.retried", "step.interrupted", "async.task.restarting"]);
const ENDINGS = new Set(["async.task.completed", "async.task.error", "async.task.cancelled"]);

/** A stream of which nothing has come. */
export const NOTHING_WRITTEN: Stream = {
  ...{ agentId: "", taskId: "", stepId: "", attempt: 0 },
  ...{ analysis: "", commentary: "", final: "", output: "", earlier: [], continuesCut: false, isReclassified: false },
};

type Streams = ReadonlyMap<string, Stream>;

/** What is being written after these notifications. */
export function written(before: Streams, notes: readonly Notification[]): Streams {
  let streams: Map<string, Stream> | null = null;
  const change = (taskId: string, to: Stream | undefined) => {
    if (to === undefined && !(streams ?? before).has(taskId)) return;
    streams ??= new Map(before);
    if (to === undefined) streams.delete(taskId);
    else streams.set(taskId, to);
  };
  for (const note of notes) {
    const known = (taskId: string) => (streams ?? before).get(taskId);
    if (note.name === "async.task.delta" || note.name === "step.output") {
      change(note.params.taskId, longer(known(note.params.taskId), note));
    } else if (note.name === "async.task.continuation") {
      const { agentId, taskId, continuationId, result, cut = false } = note.params;
      const { earlier: parts, continuesCut } = known(taskId) ?? NOTHING_WRITTEN;
      const earlier = [...parts, { final: result.final, continuesCut }];
      change(taskId, undefined);
      change(continuationId, { ...NOTHING_WRITTEN, agentId, taskId: continuationId, earlier, continuesCut: cut });
    } else if (note.name === "session.opened") {
      if ((streams ?? before).size > 0) streams = new Map(); // whatever wrote was cut off
    } else if (STEP_ENDINGS.has(note.name)) {
      const { taskId } = note.params as { taskId: string };
      change(taskId, emptied(known(taskId)));
    } else if (ENDINGS.has(note.name)) {
      change((note.params as { taskId: string }).taskId, undefined);
    }
  }
  return streams ?? before;
}

/** What is left of a stream when its step has ended: the parts that it continues. */
function emptied(stream: Stream | undefined): Stream | undefined {
  if (stream === undefined || stream.earlier.length === 0) return undefined;
  const { agentId, taskId, earlier, continuesCut } = stream;
  return { ...NOTHING_WRITTEN, agentId, taskId, earlier, continuesCut };
}

type Piece = Extract<Notification, { name: "async.task.delta" | "step.output" }>;

function longer(known: Stream | undefined, piece: Piece): Stream {
  const { agentId, taskId, stepId } = piece.params;
  const attempt = piece.name === "async.task.delta" ? piece.params.attempt : (known?.attempt ?? 0);
  const isSame = known?.stepId === stepId && known.attempt === attempt;
  const before = isSame ? known : (emptied(known) ?? NOTHING_WRITTEN);
  const begun = { ...before, agentId, taskId, stepId, attempt };
  if (piece.name === "step.output")
    return { ...begun, output: (before.output + piece.params.text).slice(-KEPT_OUTPUT) };
  const { channel, text, analysisUntil } = piece.params;
  const told = analysisUntil === undefined || before.isReclassified ? begun : reclassified(begun);
  return { ...told, [channel]: told[channel] + text };
}

/** The stream when it turns out that all that was written was reasoning, whose opening tag is missing. */
function reclassified(stream: Stream): Stream {
  const analysis = stream.analysis + stream.commentary + stream.final;
  return { ...stream, analysis, commentary: "", final: "", isReclassified: true };
}
