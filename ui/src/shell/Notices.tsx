import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { Icon } from "../parts/Icon";
import { dismiss, forgetProblems, type Notice, useNotices } from "../state/actions";

const SHOWN_MS = 6_000;
/** There is more to read, and perhaps something to do about it. */
const PROBLEM_MS = 15_000;

/** What the user is told for a while, at the edge of the page. Problems do not follow to another place. */
export function Notices() {
  const notices = useNotices((state) => state.notices);
  const [place] = useLocation();
  const before = useRef(place);
  useEffect(() => {
    if (before.current !== place) forgetProblems();
    before.current = place;
  }, [place]);
  return (
    <section className="notices" aria-label="Messages" aria-live="polite">
      {notices.map((notice) => (
        <Line key={notice.id} notice={notice} />
      ))}
    </section>
  );
}

function Line({ notice }: { notice: Notice }) {
  const { id, text, isProblem, retry } = notice;
  const [isHeld, setIsHeld] = useState(false);
  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => dismiss(id), isProblem ? PROBLEM_MS : SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, isProblem, isHeld]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: to be read is all that it is held for
    <div
      className={isProblem ? "notice notice-problem" : "notice"}
      onPointerEnter={() => setIsHeld(true)}
      onPointerLeave={() => setIsHeld(false)}
      onFocus={() => setIsHeld(true)}
      onBlur={() => setIsHeld(false)}
    >
      <p>{text}</p>
      {retry && (
        <button
          type="button"
          onClick={() => {
            dismiss(id);
            retry();
          }}
        >
          Try again
        </button>
      )}
      <button type="button" className="icon-button" aria-label="Dismiss" onClick={() => dismiss(id)}>
        <Icon name="close" />
      </button>
    </div>
  );
}
