import { useCallback, useEffect, useMemo, useState } from "react";
import type { ChannelResponse, MessageRecord, TaskRecord } from "../../client/client";
import { continuationId, isContinuation, joinedFinal } from "../../parts/continuations";
import type { Room } from "../../projection/world";
import { listen, type Stream, usePage } from "../../state/page";
import { server } from "../../state/server";
import { type Ending, earlier, heard, type Known, missing, moved, NOTHING_KNOWN, newest, read, shown } from "./known";

export interface Transcript {
  readonly known: Known;
  readonly messages: readonly MessageRecord[];
  readonly hasOlder: boolean;
  readonly isLoading: boolean;
  readonly error: Error | null;
  readonly loadOlder: () => void;
  readonly again: () => void;
}

/** The messages of a room up to the last one that it has: the newest page, and older ones as they are asked for. */
export function useTranscript(room: Room): Transcript {
  const { roomId, lastNumber } = room;
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isOpen = usePage((page) => page.connection === "open");
  const [known, setKnown] = useState(NOTHING_KNOWN);
  const [range, setRange] = useState(() => newest(lastNumber));
  const [error, setError] = useState<Error | null>(null);
  const [turn, setTurn] = useState(0);
  if (range.to !== lastNumber) setRange(moved(range, lastNumber));

  useEffect(() => listen((notes) => setKnown((before) => heard(before, roomId, notes))), [roomId]);

  const { after, limit } = missing(known, range) ?? { after: -1, limit: 0 };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn asks again
  useEffect(() => {
    if (limit === 0 || !isOpen) return;
    let isWanted = true;
    server()
      .call("room.messages", { sessionId, roomId, after, limit })
      .then(
        ({ messages }) => {
          if (!isWanted) return;
          setError(null);
          setKnown((before) => read(before, messages));
        },
        (problem) => isWanted && setError(problem),
      );
    return () => {
      isWanted = false;
    };
  }, [sessionId, roomId, after, limit, isOpen, turn]);

  const messages = useMemo(() => shown(known, range), [known, range]);
  return {
    known,
    messages,
    hasOlder: range.from > 1,
    isLoading: limit > 0 && error === null,
    error,
    loadOlder: useCallback(() => setRange(earlier), []),
    again: useCallback(() => {
      setError(null);
      setTurn((count) => count + 1);
    }, []),
  };
}

/** What is being written in a task, or in one that continues it. */
export function streamOf(streams: ReadonlyMap<string, Stream>, taskId: string): Stream | undefined {
  const found = streams.get(taskId);
  if (found !== undefined) return found;
  for (const [id, stream] of streams) if (isContinuation(id, taskId)) return stream;
  return undefined;
}

const MOST_PARTS = 50;

/** A task and those that continue it, in order. */
async function parts(sessionId: string, taskId: string): Promise<TaskRecord[]> {
  const found: TaskRecord[] = [];
  for (let number = 0; number < MOST_PARTS; number++) {
    const id = number === 0 ? taskId : continuationId(taskId, number);
    const task = await server().call("task.get", { sessionId, taskId: id });
    found.push(task);
    if (task.state !== "continued") break;
  }
  return found;
}

/** The channels of an answer; all of those that continue it together. */
export async function channelsOf(sessionId: string, taskId: string): Promise<ChannelResponse> {
  const answered = (await parts(sessionId, taskId)).flatMap(({ result, origin }) =>
    result === null ? [] : [{ ...result, continuesCut: origin?.continuesCut ?? false }],
  );
  const joined = (name: "analysis" | "commentary") =>
    answered
      .map((part) => part[name])
      .filter((text) => text !== "")
      .join("\n");
  const output = answered.at(-1)?.output ?? null;
  return { analysis: joined("analysis"), commentary: joined("commentary"), final: joinedFinal(answered), output };
}

const MOST_ENDINGS = 5_000;
const endings = new Map<string, Promise<Ending | null>>();

/**
 * How a task of a member ended that left no message; null if it has not ended. It is asked for once, since rows come
 * and go as one scrolls.
 */
export function endingOf(sessionId: string, taskId: string): Promise<Ending | null> {
  const key = JSON.stringify([sessionId, taskId]);
  const known = endings.get(key);
  if (known !== undefined) return known;
  if (endings.size >= MOST_ENDINGS) endings.clear();
  const asked = askForEnding(sessionId, taskId);
  endings.set(key, asked);
  const forget = () => endings.delete(key);
  asked.then((ending) => ending ?? forget(), forget);
  return asked;
}

async function askForEnding(sessionId: string, taskId: string): Promise<Ending | null> {
  const task = (await parts(sessionId, taskId)).at(-1);
  if (task === undefined || task.finishedAt === null) return null;
  const at = task.finishedAt;
  if (task.state === "joined") return { kind: "joined", at };
  if (task.state === "completed" && isPass(task.result?.final ?? "")) return { kind: "passed", at };
  const message =
    task.state === "completed" ? "It left the room before it answered." : "The task ended without an answer.";
  return { kind: "failed", error: task.error ?? { code: "unanswered", message }, at };
}

function isPass(text: string): boolean {
  return text.trim() === "" || /^[\W_]*\[\s*pass\s*\][\W_]*$/i.test(text);
}
