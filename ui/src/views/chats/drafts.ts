/** What was written and not sent, and the id of a message that may or may not have arrived. */
export interface Draft {
  readonly text: string;
  /** Set once it was tried to send this text: the same id again is the same message. */
  readonly messageId: string | null;
}

const EMPTY: Draft = { text: "", messageId: null };

function keyOf(sessionId: string, roomId: string): string {
  return `whisperer.draft.${JSON.stringify([sessionId, roomId])}`;
}

export function draftOf(sessionId: string, roomId: string): Draft {
  try {
    const { text, messageId } = JSON.parse(sessionStorage.getItem(keyOf(sessionId, roomId)) ?? "{}");
    return { text: typeof text === "string" ? text : "", messageId: typeof messageId === "string" ? messageId : null };
  } catch {
    return EMPTY;
  }
}

export function keepDraft(sessionId: string, roomId: string, draft: Draft): void {
  try {
    if (draft.text === "") sessionStorage.removeItem(keyOf(sessionId, roomId));
    else sessionStorage.setItem(keyOf(sessionId, roomId), JSON.stringify(draft));
  } catch {
    // The browser's store is full or shut: the draft is kept until the room is left.
  }
}
