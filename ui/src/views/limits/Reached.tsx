import { useMemo } from "react";
import type { LimitAction } from "../../client/client";
import { type Rest, useSearch } from "../../history/useSearch";
import { AgentLink } from "../../parts/AgentLink";
import { duration } from "../../parts/format";
import { Empty, Problem } from "../../parts/Messages";
import { Ago } from "../../parts/Times";
import { useWorld } from "../../state/page";
import { aboutLimit, amount } from "./names";
import { isReached, type LimitReached, shownOf } from "./reached";

const SHOWN = 50;
const REST: Rest = { found: 30, looked: 10_000 };

const ACTIONS: Readonly<Record<LimitAction, string>> = {
  refused: "refused",
  failed: "the task failed",
  paused: "the agent is paused",
  waiting: "work waits",
  cut: "the result was cut",
};

/** When limits were reached lately, with the numbers. */
export function Reached({ agentId }: { agentId: string }) {
  const { notes, searchedTo, isBusy, problem, goOn } = useSearch(isReached, REST);
  const seq = useWorld((world) => world.seq);
  const shown = useMemo(() => shownOf(notes, seq, agentId), [notes, seq, agentId]);
  return (
    <section className="limits-part" aria-label="Reached lately">
      <h2>Reached lately</h2>
      {problem && <Problem error={problem} onRetry={goOn} />}
      {isBusy && shown.length === 0 && <p className="loading">Loading…</p>}
      {!isBusy && !problem && shown.length === 0 && (
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
      {!isBusy && searchedTo > 0 && (
        <button type="button" onClick={goOn}>
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
