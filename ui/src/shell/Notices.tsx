import { useEffect } from "react";
import { Icon } from "../parts/Icon";
import { dismiss, type Notice, useNotices } from "../state/actions";

const SHOWN_MS = 6_000;

/** What the user is told for a while, at the edge of the page. Problems stay until they are dismissed. */
export function Notices() {
  const notices = useNotices((state) => state.notices);
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
  useEffect(() => {
    if (isProblem) return;
    const timer = setTimeout(() => dismiss(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, isProblem]);
  return (
    <div className={isProblem ? "notice notice-problem" : "notice"}>
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
