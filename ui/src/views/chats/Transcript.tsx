import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { count } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Empty, Problem } from "../../parts/Messages";
import type { Room } from "../../projection/world";
import { useIsPast, usePage } from "../../state/page";
import { markSeen, seenKey } from "../../state/seen";
import { TranscriptRow } from "./Messages";
import { useMentionable } from "./names";
import { rowsOf } from "./rows";
import { useTranscript } from "./transcript";

const AT_END = 48;
/** Older messages are loaded when one is so near to the first. */
const NEAR_TOP = 600;
const ESTIMATE = 96;

interface TranscriptProps {
  room: Room;
  /** How often the user said something: each time leads to the end. */
  sent: number;
}

/** What was said in a room, and what is being said. It stays at its end while one is there. */
export function Transcript({ room, sent }: TranscriptProps) {
  const transcript = useTranscript(room);
  const { messages, known, hasOlder, isLoading, error, loadOlder, again } = transcript;
  const rows = useMemo(() => rowsOf(messages, room.answering), [messages, room.answering]);
  const mentions = useMentionable(room);
  const box = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  const [isAtEnd, setIsAtEnd] = useState(true);
  const [isNearTop, setIsNearTop] = useState(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ESTIMATE,
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: AT_END,
    overscan: 6,
    paddingStart: 8,
    paddingEnd: 8,
    initialRect: { width: 800, height: 600 },
  });
  const items = virtual.getVirtualItems();
  const totalSize = virtual.getTotalSize();
  const isFilled = rows.length > 0;
  const wait = isLoading || error !== null;

  // biome-ignore lint/correctness/useExhaustiveDependencies: what is sent leads to the end
  useLayoutEffect(() => {
    if (isFilled) virtual.scrollToEnd();
  }, [isFilled, virtual, sent]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: as the transcript grows its end is followed
  useLayoutEffect(() => {
    if (isAtEnd && isFilled) virtual.scrollToEnd();
  }, [isAtEnd, isFilled, virtual, totalSize]);
  useEffect(() => {
    if (!hasOlder || wait || !isFilled) return;
    if (isNearTop || totalSize <= (box.current?.clientHeight ?? 0)) loadOlder();
  }, [hasOlder, wait, isFilled, isNearTop, totalSize, loadOlder]);
  const unseen = useSeenUpTo(room, isAtEnd);

  return (
    <div className="chat-transcript">
      <div
        ref={box}
        className="chat-scroll"
        role="log"
        aria-label="Messages"
        aria-busy={isLoading}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be within reach of the keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          const isEnd = scrollHeight - scrollTop - clientHeight <= AT_END;
          // What grows below is no reason to leave the end: only a move upwards is.
          if (isEnd || scrollTop < lastTop.current) setIsAtEnd(isEnd);
          setIsNearTop(scrollTop < NEAR_TOP);
          lastTop.current = scrollTop;
        }}
      >
        {error && <Problem error={error} onRetry={again} />}
        {!isFilled && !isLoading && !error && <NothingSaid room={room} />}
        <div className="chat-rows" style={{ height: totalSize }}>
          {items.map(({ key, index, start }) => {
            const row = rows[index];
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className="chat-row"
                style={{ transform: `translateY(${start}px)` }}
              >
                {row && <TranscriptRow row={row} known={known} hopLimit={room.hopLimit} mentions={mentions} />}
              </div>
            );
          })}
        </div>
      </div>
      {!isAtEnd && (
        <button type="button" className="chat-to-end" onClick={() => virtual.scrollToEnd()}>
          <Icon name="forward" size={14} />
          {unseen > 0 ? `${count(unseen)} new message${unseen === 1 ? "" : "s"}` : "To the newest"}
        </button>
      )}
    </div>
  );
}

/** Remembers what was in sight. How many messages came since the end was. */
function useSeenUpTo(room: Room, isAtEnd: boolean): number {
  const { roomId, lastNumber } = room;
  const session = usePage(seenKey);
  const isPast = useIsPast();
  const isVisible = useIsVisible();
  const [upTo, setUpTo] = useState(lastNumber);
  if (isAtEnd && upTo !== lastNumber) setUpTo(lastNumber);
  useEffect(() => {
    if (isAtEnd && isVisible && !isPast) markSeen(session, roomId, lastNumber);
  }, [isAtEnd, isVisible, isPast, session, roomId, lastNumber]);
  return Math.max(0, lastNumber - upTo);
}

function useIsVisible(): boolean {
  const [isVisible, setIsVisible] = useState(document.visibilityState !== "hidden");
  useEffect(() => {
    const look = () => setIsVisible(document.visibilityState !== "hidden");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return isVisible;
}

function NothingSaid({ room }: { room: Room }) {
  return (
    <Empty title="Nothing has been said here">
      {room.kind === "direct"
        ? "Write below. The agent answers as soon as it has time; while it writes, you can read along."
        : "Write below. Everyone may answer; with @name only those whom you name are asked, with @all everyone has to."}
    </Empty>
  );
}
