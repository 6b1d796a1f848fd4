import type { Failure, MessageRecord, Notification } from "../../client/client";
import { USER } from "../../projection/coordination";

/** How a member that was asked ended without a message. */
export type Ending = { readonly at: number } & (
  | { readonly kind: "passed" }
  /** It was heard while the member was at an earlier answer, which is for both. */
  | { readonly kind: "joined" }
  | { readonly kind: "failed"; readonly error: Failure }
);

/** What is known of a room's transcript: messages by number, and what happened beside them. */
export interface Known {
  readonly messages: ReadonlyMap<number, MessageRecord>;
  /** By task, of what happened while the page looked. */
  readonly endings: ReadonlyMap<string, Ending>;
  /** By message, why members were not asked. */
  readonly absent: ReadonlyMap<number, Readonly<Record<string, string>>>;
}

export const NOTHING_KNOWN: Known = { messages: new Map(), endings: new Map(), absent: new Map() };

/** Which messages of a room are shown. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export const PAGE = 50;
const LONGEST_CALL = 200;

export function newest(last: number): Range {
  return { from: Math.max(1, last - PAGE + 1), to: last };
}

/** The range when the room's last message is another: the next one, or one of quite another time. */
export function moved(range: Range, last: number): Range {
  if (last < range.from || last > range.to + LONGEST_CALL) return newest(last);
  return { from: range.from, to: last };
}

export function earlier(range: Range): Range {
  return { from: Math.max(1, range.from - PAGE), to: range.to };
}

/** What has to be asked for, as `room.messages` takes it; null if all messages of the range are known. */
export function missing({ messages }: Known, { from, to }: Range): { after: number; limit: number } | null {
  let last = to;
  while (last >= from && messages.has(last)) last -= 1;
  if (last < from) return null;
  let first = last;
  while (first > from && !messages.has(first - 1) && last - first < LONGEST_CALL - 1) first -= 1;
  return { after: first - 1, limit: last - first + 1 };
}

/** The known messages of a range, without a gap, up to its end. */
export function shown({ messages }: Known, { from, to }: Range): MessageRecord[] {
  const found: MessageRecord[] = [];
  for (let number = to; number >= from; number--) {
    const message = messages.get(number);
    if (message === undefined) {
      if (found.length === 0) continue; // it is on its way
      break;
    }
    found.push(message);
  }
  return found.reverse();
}

export function read(known: Known, records: readonly MessageRecord[]): Known {
  const messages = new Map(known.messages);
  for (const message of records) messages.set(message.number, message);
  return { ...known, messages };
}

/** What is known after these notifications; the same if they are not about this room. */
export function heard(known: Known, roomId: string, notes: readonly Notification[]): Known {
  return notes.reduce((before, note) => {
    const isHere = (note.params as { roomId?: string }).roomId === roomId;
    return isHere ? heardOne(before, note) : before;
  }, known);
}

function heardOne(known: Known, note: Notification): Known {
  switch (note.name) {
    case "room.message": {
      if (known.messages.has(note.params.number)) return known;
      const { sessionId, cause, at } = note;
      const parts = note.params.parts ?? null;
      return read(known, [{ ...note.params, sessionId, cause, createdAt: at, asked: {}, parts, erasedAt: null }]);
    }
    case "room.answering": {
      const { number, agentId, taskId } = note.params;
      const message = known.messages.get(number);
      return message ? read(known, [{ ...message, asked: { ...message.asked, [agentId]: taskId } }]) : known;
    }
    case "room.passed":
      return { ...known, endings: new Map(known.endings).set(note.params.taskId, { kind: "passed", at: note.at }) };
    case "room.joined":
      return { ...known, endings: new Map(known.endings).set(note.params.taskId, { kind: "joined", at: note.at }) };
    case "room.unanswered": {
      const { taskId, error } = note.params;
      return { ...known, endings: new Map(known.endings).set(taskId, { kind: "failed", error, at: note.at }) };
    }
    case "room.absent": {
      const { number, agentId, reason } = note.params;
      const absent = { ...known.absent.get(number), [agentId]: reason };
      return { ...known, absent: new Map(known.absent).set(number, absent) };
    }
    default:
      return known;
  }
}

/** Why the members that a message mentions were not asked, as far as it can be told from the message. */
export function notAsked(message: MessageRecord, hopLimit: number, absent: Readonly<Record<string, string>> = {}) {
  const names = new Set([...Object.keys(absent), ...message.mentions.filter((member) => !(member in message.asked))]);
  const isAtLimit = message.sender !== USER && message.hops > hopLimit && message.mentions.length > 0;
  return {
    isAtLimit,
    absent: isAtLimit ? [] : [...names].map((agentId) => ({ agentId, reason: absent[agentId] ?? "" })),
  };
}
