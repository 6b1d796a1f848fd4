import { useCallback, useEffect, useState } from "react";
import type { LimitAction } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { duration } from "../../parts/format";
import { Empty, Problem } from "../../parts/Messages";
import { Ago } from "../../parts/Times";
import { listen, usePage, useWorld } from "../../state/page";
import { aboutLimit, amount } from "./names";
import { type Found, type LimitReached, lastSeq, lookBack, merged, reachedIn, shownOf } from "./reached";

const SHOWN = 50;

const ACTIONS: Readonly<Record<LimitAction, string>> = {
  refused: "refused",
  failed: "the task failed",
  paused: "the agent is paused",
  waiting: "work waits",
  cut: "the result was cut",
};

/** When limits were reached lately, with the numbers. */
export function Reached({ agentId }: { agentId: string }) {
  const { found, error, further } = useReached();
  const seq = useWorld((world) => world.seq);
  const shown = found === null ? [] : shownOf(found.notes, seq, agentId);
  return (
    <section className="limits-part" aria-label="Reached lately">
      <h2>Reached lately</h2>
      {error && <Problem error={error} onRetry={further} />}
      {found === null && !error && <p className="loading">Loading…</p>}
      {found !== null && shown.length === 0 && (
        <Empty title="No limit was reached.">
          When a queue is full, a budget is spent or a task takes too long, it is told here: what was wanted, what there
          may be, and what became of it.
        </Empty>
      )}
      <ul className="limits-list">
        {shown.slice(0, SHOWN).map((note) => (
          <Line key={note.seq} note={note} />
        ))}
      </ul>
      {found !== null && found.from > 0 && (
        <button type="button" onClick={further}>
          Look further back in the log
        </button>
      )}
    </section>
  );
}

function Line({ note: { at, params } }: { note: LimitReached }) {
  const { limit, used, max, action, agentId, retryAfterSeconds } = params;
  return (
    <li>
      <span>
        <strong title={limit}>{aboutLimit(limit).title}</strong>
        {agentId !== null && (
          <>
            {" of "}
            <AgentLink agentId={agentId} />
          </>
        )}
        : {amount(limit, used)} of {amount(limit, max)}, {ACTIONS[action]}
        {retryAfterSeconds !== undefined && `, again in ${duration(retryAfterSeconds)}`}
      </span>
      <span className="quiet">
        <Ago at={at} />
      </span>
    </li>
  );
}

function useReached() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const look = useCallback(
    (before: number) => {
      setError(null);
      return lookBack(sessionId, before).then(
        ({ notes, from }) => setFound((known) => ({ notes: merged(known?.notes ?? [], notes), from })),
        (problem) => setError(problem as Error),
      );
    },
    [sessionId],
  );
  useEffect(() => {
    setFound(null);
    void look(lastSeq());
    return listen((notes) => {
      const news = reachedIn(notes);
      if (news.length > 0)
        setFound((known) => ({ notes: merged(known?.notes ?? [], news), from: known?.from ?? lastSeq() }));
    });
  }, [look]);
  const further = useCallback(() => void look(found?.from ?? lastSeq()), [look, found]);
  return { found, error, further };
}
