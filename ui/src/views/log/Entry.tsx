import { useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import type { Notification } from "../../client/client";
import { usePages } from "../../history/history";
import { pageOf } from "../../history/pages";
import { agentOf, type NameOf, telling } from "../../history/telling";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Messages";
import { At } from "../../parts/Times";
import { USER } from "../../projection/coordination";
import { useAddress } from "../../shell/addresses";
import { ForkButton } from "../../shell/ForkButton";
import { travelTo } from "../../state/playhead";
import "../../parts/aside.css";

const MOST_SHOWN = 50_000;

interface EntryProps {
  seq: number;
  /** The newest that there is at the time that is shown. */
  lastSeq: number;
  nameOf: NameOf;
  onClose: () => void;
}

/** One notification with all that it carries. */
export function Entry({ seq, lastSeq, nameOf, onClose }: EntryProps) {
  const pages = usePages();
  const isInLog = seq > 0 && seq <= lastSeq;
  const note = isInLog ? pages.note(seq) : undefined;
  const [problem, setProblem] = useState<Error | null>(null);
  const [turn, setTurn] = useState(0);
  const isThere = note !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn asks again
  useEffect(() => {
    setProblem(null);
    if (isThere || !isInLog) return;
    pages.page(pageOf(seq)).catch((error) => setProblem(error as Error));
  }, [pages, seq, isInLog, isThere, turn]);
  return (
    <aside className="aside" aria-label={`Entry ${seq}`}>
      <header className="aside-head">
        <h2>Entry {Number.isFinite(seq) ? seq : "?"}</h2>
        <button type="button" className="icon-button" aria-label="Close the entry" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {problem !== null && <Problem error={problem} onRetry={() => setTurn(turn + 1)} />}
      {note === undefined && problem === null && (
        <p className="quiet">{isInLog ? "Loading…" : notThere(seq, pages.lastSeq)}</p>
      )}
      {note !== undefined && <Told note={note} nameOf={nameOf} />}
    </aside>
  );
}

function notThere(seq: number, newest: number): string {
  return seq > 0 && seq <= newest
    ? "There was no such entry yet at the time that is shown."
    : "The log has no such entry.";
}

function Told({ note, nameOf }: { note: Notification; nameOf: NameOf }) {
  const to = useAddress();
  const agent = agentOf(note);
  const [isWhole, setIsWhole] = useState(false);
  const text = useMemo(() => JSON.stringify(note.params, null, 2), [note]);
  const shown = isWhole ? text : text.slice(0, MOST_SHOWN);
  return (
    <>
      <p className="aside-told" dir="auto">
        {telling(note, nameOf)}.
      </p>
      <dl className="facts">
        <dt>Name</dt>
        <dd className="mono">{note.name}</dd>
        <dt>Time</dt>
        <dd>
          <At at={note.at} />
        </dd>
        {agent !== null && agent !== USER && (
          <>
            <dt>Agent</dt>
            <dd>
              <Link href={to("agents", agent)}>{nameOf(agent)}</Link>
            </dd>
          </>
        )}
        <dt>Cause</dt>
        <dd>
          <Cause cause={note.cause} />
        </dd>
      </dl>
      <button type="button" onClick={() => void travelTo(note.seq)}>
        <Icon name="history" size={15} /> Show the page at this moment
      </button>
      <ForkButton at={note.seq} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard */}
      <pre className="log-json" tabIndex={0}>
        {shown}
      </pre>
      {shown.length < text.length && (
        <button type="button" onClick={() => setIsWhole(true)}>
          Show all of it
        </button>
      )}
    </>
  );
}

/** What something came of, and the way to everything else that came of it. */
function Cause({ cause }: { cause: string }) {
  const to = useAddress();
  if (cause === "") return <span className="quiet">not told</span>;
  const [, id = ""] = cause.split(/:(.*)/s);
  return (
    <>
      <span className="mono log-cause">{cause}</span>{" "}
      <Link href={`${to("log")}?text=${encodeURIComponent(id === "" ? cause : id)}`}>All with it</Link>
    </>
  );
}
