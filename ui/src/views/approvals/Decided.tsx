import { useMemo, useState } from "react";
import { Link } from "wouter";
import type { ApprovalRecord } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { Empty, Loaded, LookedThrough } from "../../parts/Messages";
import { visible } from "../../parts/markdown/visible";
import { Ago } from "../../parts/Times";
import { useAddress, useSelection } from "../../shell/addresses";
import { useHorizon } from "../../state/horizon";
import { useNewest } from "../../state/newest";
import { usePage, useWorld } from "../../state/page";
import { lineOf } from "./arguments";
import { Call } from "./Call";
import { decidedBy } from "./decided";
import { Sign } from "./Sign";

const PAGE = 50;

/** What was decided before, and by whom. */
export function Decided() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const at = useHorizon();
  const [state, setState] = useSelection("state");
  const [limit, setLimit] = useState(PAGE);
  const answer = useNewest(
    "approval.list",
    { sessionId, approvalState: null },
    { wanted: limit, refreshOn: ({ name }) => name.startsWith("approval.") },
  );
  const records = answer.data?.approvals;
  const rows = useMemo(() => decidedBy(records ?? [], at, state), [records, at, state]);
  return (
    <section className="approvals-decided" aria-labelledby="approvals-decided">
      <div className="view-head">
        <h2 id="approvals-decided">Decided</h2>
        <span className="space" />
        <select aria-label="Which decisions" value={state} onChange={(event) => setState(event.target.value)}>
          <option value="">All</option>
          <option value="approved">Approved</option>
          <option value="refused">Refused</option>
          <option value="withdrawn">Withdrawn</option>
          <option value="expired">Expired</option>
        </select>
      </div>
      <Loaded answer={answer}>
        {() => (
          <>
            {rows.length === 0 && !answer.isLoading && <Empty title="Nothing was decided yet." />}
            <ul className="approvals-list">
              {rows.map((record) => (
                <Row key={record.approvalId} record={record} />
              ))}
            </ul>
            <LookedThrough most={answer.lookedThrough} />
            {answer.hasOlder && (
              <button type="button" onClick={() => setLimit(limit + PAGE)}>
                Show earlier ones
              </button>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}

function Row({ record }: { record: ApprovalRecord }) {
  const address = useAddress();
  const [isOpen, setIsOpen] = useState(false);
  const agent = useWorld((world) => world.agents.get(record.agentId)?.name || record.agentId);
  const line = useMemo(() => lineOf(record.arguments), [record.arguments]);
  return (
    <li className="card">
      <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary className="approvals-row">
          <Sign state={record.state} />
          <strong className="ellipsis">{agent}</strong>
          <span className="mono">{record.tool}</span>
          <span className="approvals-line quiet mono ellipsis">{visible(line)}</span>
          <span className="quiet">
            {record.decidedBy !== null && `by ${record.decidedBy} `}
            <Ago at={record.decidedAt ?? record.requestedAt} />
          </span>
          {record.reason !== "" && <span className="approvals-reason">{visible(record.reason)}</span>}
        </summary>
        {isOpen && (
          <>
            <p>
              Asked by <AgentLink agentId={record.agentId} /> <Ago at={record.requestedAt} />,{" "}
              <Link href={`${address("agents", record.agentId)}?task=${encodeURIComponent(record.taskId)}`}>
                for this task
              </Link>
            </p>
            <Call text={record.arguments} digest={record.digest} />
          </>
        )}
      </details>
    </li>
  );
}
