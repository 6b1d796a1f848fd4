import { type KeyboardEvent, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Deliver } from "../../client/client";
import { RpcError } from "../../client/errors";
import { Icon } from "../../parts/Icon";
import { newId } from "../../parts/ids";
import { whyNotSent } from "../../parts/sending";
import type { Room } from "../../projection/world";
import { nameIn } from "../../state/names";
import { useIsLive, usePage, useWorld, whyNotLive } from "../../state/page";
import { server } from "../../state/server";
import { Attach, type Chosen, ChosenFiles, contentsOf } from "./Attaching";
import { type Candidate, candidates, completed, mentionAt } from "./completion";
import { type Draft, draftOf, keepDraft } from "./drafts";

const NO_CANDIDATES: readonly Candidate[] = [];

interface ComposerProps {
  room: Room;
  onSent: () => void;
  /** Shows who is in the room, where others are let in. */
  onMembers: () => void;
}

/** Where one writes. Enter sends, Shift and Enter begin a line, `@` offers the members. */
export function Composer({ room, onSent, onMembers }: ComposerProps) {
  const isLive = useIsLive();
  const { draft, files, write, choose, remove, send, isSending, error } = useSending(room.roomId, onSent);
  const field = useRef<HTMLTextAreaElement>(null);
  const caretAfter = useRef<number | null>(null);
  const choice = useChoice(room, draft.text, (text, caret) => {
    write(text);
    caretAfter.current = caret;
  });
  // Before the next key: what is typed at once belongs behind the name.
  useLayoutEffect(() => {
    if (caretAfter.current === null) return;
    field.current?.setSelectionRange(caretAfter.current, caretAfter.current);
    caretAfter.current = null;
  });
  const listId = useId();
  const canSend = isLive && !isSending && draft.text.trim() !== "";
  const isAtWork = room.answering.size > 0;
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing || choice.take(event)) return;
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    if (canSend) void send();
  };
  const isOpen = choice.offered.length > 0;
  return (
    <form
      className="chat-composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSend) void send();
      }}
    >
      {error && <Failed error={error} canSend={canSend} onMembers={onMembers} />}
      {isOpen && <Offers id={listId} {...choice} />}
      <ChosenFiles files={files} onRemove={remove} />
      <div className="chat-write">
        <Attach disabled={!isLive || isSending} onChoose={(chosen) => void choose(chosen)} />
        <textarea
          ref={field}
          rows={Math.min(8, draft.text.split("\n").length)}
          value={draft.text}
          readOnly={isSending}
          placeholder={room.kind === "group" ? "Write; @ asks a member" : "Write a message"}
          aria-label="Message"
          aria-autocomplete={room.kind === "group" ? "list" : "none"}
          aria-controls={isOpen ? listId : undefined}
          aria-activedescendant={isOpen ? `${listId}-${choice.active}` : undefined}
          onChange={(event) => {
            write(event.target.value);
            choice.look(event.target.selectionStart);
          }}
          onSelect={(event) => choice.look(event.currentTarget.selectionStart)}
          onBlur={() => choice.look(null)}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const { files: pasted } = event.clipboardData;
            if (pasted.length === 0) return;
            event.preventDefault();
            void choose([...pasted]);
          }}
        />
        {isAtWork && (
          <button
            type="button"
            disabled={!canSend}
            title={isLive ? "Who is at an answer hears it before the next step of it" : whyNotLive()}
            onClick={() => void send("next_step")}
          >
            Send now
          </button>
        )}
        <button type="submit" className="primary" disabled={!canSend} title={isLive ? "Send (Enter)" : whyNotLive()}>
          <Icon name="send" size={16} />
          <span className="chat-send-word">{isSending ? "Sending…" : "Send"}</span>
        </button>
      </div>
    </form>
  );
}

interface FailedProps {
  error: Error;
  canSend: boolean;
  onMembers: () => void;
}

/** Why it was not sent; if somebody is meant who is not in the room, with the way to let them in. */
function Failed({ error, canSend, onMembers }: FailedProps) {
  const isStranger = error instanceof RpcError && error.data.code === "unknown_member";
  return (
    <div className="chat-failed" role="alert">
      <p>{whyNotSent(error)}</p>
      {isStranger && (
        <button type="button" onClick={onMembers}>
          Members
        </button>
      )}
      <button type="submit" disabled={!canSend}>
        Try again
      </button>
    </div>
  );
}

interface OffersProps {
  id: string;
  offered: readonly Candidate[];
  active: number;
  choose: (candidate: Candidate) => void;
}

/** The focus stays in the text, which takes the keys and says what is active. */
function Offers({ id, offered, active, choose }: OffersProps) {
  return (
    <div className="chat-offers" role="listbox" tabIndex={-1} id={id} aria-label="Members to mention">
      {offered.map((candidate, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the text takes the keys
        <div
          key={candidate.id}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => choose(candidate)}
        >
          <bdi>@{candidate.id}</bdi> <bdi className="quiet">{candidate.name}</bdi>
        </div>
      ))}
    </div>
  );
}

/** The text and its way to the server. What failed stays, and is the same message when it is tried again. */
function useSending(roomId: string, onSent: () => void) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const [draft, setDraft] = useState(() => draftOf(sessionId, roomId));
  const [isSending, setIsSending] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [files, setFiles] = useState<readonly Chosen[]>([]);
  const keep = (changed: Draft) => {
    setDraft(changed);
    keepDraft(sessionId, roomId, changed);
  };
  const send = async (deliver?: Deliver) => {
    const tried = { text: draft.text, messageId: draft.messageId ?? newId() };
    keep(tried);
    setError(null);
    setIsSending(true);
    try {
      const parts = files.map(({ name, data }) => ({ name, data }));
      await server().call("room.post", {
        sessionId,
        roomId,
        ...tried,
        ...(parts.length > 0 && { parts }),
        ...(deliver && { deliver }),
      });
      keep({ text: "", messageId: null });
      setFiles([]);
      onSent();
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setIsSending(false);
    }
  };
  const write = (text: string) => {
    if (text === draft.text) return;
    keep({ text, messageId: null }); // another text is another message
    setError(null); // which was not tried yet
  };
  const change = (changed: readonly Chosen[]) => {
    setFiles(changed);
    keep({ text: draft.text, messageId: null }); // with other files it is another message
    setError(null);
  };
  const choose = async (chosen: readonly File[]) => {
    try {
      change([...files, ...(await contentsOf(chosen))]);
    } catch (problem) {
      setError(problem as Error);
    }
  };
  const remove = (file: Chosen) => change(files.filter((each) => each !== file));
  return { draft, files, write, choose, remove, send, isSending, error };
}

/** The members that fit the mention at the caret, and which of them is active. */
function useChoice(room: Room, text: string, write: (text: string, caret: number) => void) {
  const names = useWorld((world) => world.agents);
  const [caret, setCaret] = useState<number | null>(null);
  const [active, setActive] = useState(0);
  const [closedAt, setClosedAt] = useState<number | null>(null);
  const mention = room.kind === "group" && caret !== null ? mentionAt(text, caret) : null;
  const query = mention !== null && mention.start !== closedAt ? mention.query : null;
  const offered = useMemo(() => {
    if (query === null) return NO_CANDIDATES;
    const members = room.members.map((id) => ({ id, name: nameIn(names, id) }));
    return candidates(query, members);
  }, [query, room.members, names]);
  const shown = Math.min(active, Math.max(0, offered.length - 1));
  const choose = (candidate: Candidate) => {
    if (mention === null) return;
    const { text: written, caret: after } = completed(text, mention, candidate);
    setActive(0);
    setCaret(null);
    write(written, after);
  };
  const keys: Record<string, () => void> = {
    ArrowDown: () => setActive((shown + 1) % offered.length),
    ArrowUp: () => setActive((shown + offered.length - 1) % offered.length),
    Escape: () => setClosedAt(mention?.start ?? null),
    Enter: () => offered[shown] && choose(offered[shown]),
    Tab: () => offered[shown] && choose(offered[shown]),
  };
  return {
    offered,
    active: shown,
    choose,
    look: (at: number | null) => {
      setCaret(at);
      if (at === null || mentionAt(text, at)?.start !== closedAt) setClosedAt(null);
    },
    /** Whether the key was meant for the list. */
    take: (event: KeyboardEvent): boolean => {
      const key = keys[event.key];
      if (offered.length === 0 || key === undefined || event.shiftKey) return false;
      event.preventDefault();
      key();
      return true;
    },
  };
}
