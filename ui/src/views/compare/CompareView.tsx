import { useCallback, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { useReaching } from "../../parts/acting";
import { clockTime, count } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Empty, Problem } from "../../parts/Messages";
import { addressOf, useAddress, usePlace } from "../../shell/addresses";
import { openDialog } from "../../shell/dialogState";
import { useAnswer } from "../../state/answers";
import { useIsPast, usePage } from "../../state/page";
import { useTitles } from "../../state/titles";
import { Alone } from "./Alone";
import { markedOf } from "./differences";
import { useLogs } from "./logs";
import { Partings } from "./Partings";
import { Summary } from "./Summary";
import { Timelines } from "./Timelines";
import "./compare.css";

/** Two sessions side by side: that which is shown, and another one. */
export default function CompareView() {
  const { sessionId, item } = usePlace();
  const other = item === sessionId ? undefined : item;
  return (
    <>
      <Head a={sessionId ?? ""} b={other ?? ""} />
      {other === undefined ? <Choose /> : <Compared key={other} a={sessionId ?? ""} b={other} />}
    </>
  );
}

function Head({ a, b }: { a: string; b: string }) {
  const sessions = usePage((page) => page.sessions);
  const [, go] = useLocation();
  const to = useAddress();
  const titleOf = useTitles();
  const others = (sessions ?? []).filter(({ sessionId }) => sessionId !== a);
  const isListed = b === "" || others.some(({ sessionId }) => sessionId === b);
  return (
    <header className="view-head">
      <h1>Compare</h1>
      <span className="compare-side" data-side="a">
        A
      </span>
      <strong className="ellipsis">{titleOf(a)}</strong>
      <label className="compare-other">
        <span className="compare-side" data-side="b">
          B
        </span>
        <select aria-label="The other session" value={b} onChange={({ target }) => go(to("compare", target.value))}>
          {b === "" && <option value="">Choose a session…</option>}
          {!isListed && <option value={b}>{b}</option>}
          {others.map(({ sessionId }) => (
            <option key={sessionId} value={sessionId}>
              {titleOf(sessionId)}
            </option>
          ))}
        </select>
      </label>
      {b !== "" && <Link href={addressOf(b, "compare", a)}>Swap</Link>}
    </header>
  );
}

function Choose() {
  const isAlone = usePage((page) => page.sessions !== null && page.sessions.length < 2);
  const reaching = useReaching();
  return (
    <Empty
      title={isAlone ? "There is no other session to compare this one with." : "Choose the session to compare with."}
    >
      <p>
        Steps are lined up by what caused them, so that ids, times and orders do not matter: here is where agents first
        answer differently, which calls and mails only one of the two has, and what each has used.
      </p>
      <button type="button" className="empty-next" {...reaching} onClick={() => openDialog({ kind: "fork" })}>
        <Icon name="fork" size={15} /> Fork this session
      </button>
    </Empty>
  );
}

function Compared({ a, b }: { a: string; b: string }) {
  const answer = useAnswer("session.compare", { sessionId: a, otherSessionId: b });
  const [turn, setTurn] = useState(0);
  const { logs, readAt, problem } = useLogs(a, b, turn);
  const marked = useMemo(() => (answer.data === undefined ? null : markedOf(answer.data)), [answer.data]);
  const again = () => {
    answer.again();
    setTurn(turn + 1);
  };
  const nameOf = useCallback(
    (agentId: string) => logs?.map(({ agents }) => agents.get(agentId)?.name).find(Boolean) ?? agentId,
    [logs],
  );
  const failed = answer.error ?? problem;
  return (
    <>
      <Standing lastSeq={logs?.[0].lastSeq ?? null} readAt={readAt} onAgain={again} />
      {failed !== null && <Problem error={failed} onRetry={again} />}
      {answer.isLoading && (
        <p className="loading" role="status">
          Both sessions are read and lined up. That may take a while if they are long.
        </p>
      )}
      {answer.data && <Summary a={a} b={b} comparison={answer.data} nameOf={nameOf} />}
      {logs && <Timelines logs={logs} marked={marked} nameOf={nameOf} />}
      {answer.data && <Partings a={a} b={b} comparison={answer.data} nameOf={nameOf} />}
      {answer.data && <Alone a={a} b={b} comparison={answer.data} nameOf={nameOf} />}
    </>
  );
}

interface StandingProps {
  /** The last entry of A that was read, if it was, and when. */
  lastSeq: number | null;
  readAt: number;
  onAgain: () => void;
}

/** How new what is shown is, and a way to newer. */
function Standing({ lastSeq, readAt, onAgain }: StandingProps) {
  const newest = usePage((page) => page.live.seq);
  const isPast = useIsPast();
  const reaching = useReaching();
  const fresh = lastSeq === null ? 0 : newest - lastSeq;
  return (
    <p className="compare-standing" role="status">
      {lastSeq !== null && <span className="quiet">As of {clockTime(readAt)}.</span>}
      {fresh > 0 && <span> A has gone on since, by {count(fresh)} entries.</span>}
      {isPast && (
        <span className="quiet"> Both sessions are compared as they are now, not as of the moment above.</span>
      )}
      <button type="button" {...reaching} onClick={onAgain}>
        <Icon name="again" size={15} /> Compare again
      </button>
    </p>
  );
}
