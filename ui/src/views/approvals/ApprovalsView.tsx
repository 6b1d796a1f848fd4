import { useCallback, useMemo, useRef } from "react";
import { useFirst } from "../../parts/First";
import { Empty } from "../../parts/Messages";
import { useSettling } from "../../parts/settling";
import type { PendingApproval } from "../../projection/world";
import { usePlace, useSelection } from "../../shell/addresses";
import { useWorld } from "../../state/page";
import { Decided } from "./Decided";
import { Pending } from "./Pending";
import { useStanding } from "./standing";
import "./approvals.css";

/** Each card has its arguments to load and to draw. */
const CARDS = 30;

/** The tool calls that wait for a person, and what was decided on others. */
export default function ApprovalsView() {
  const approvals = useWorld((world) => world.approvals);
  const { item: marked } = usePlace();
  const [agentId, setAgentId] = useSelection("agent");
  const agents = useMemo(() => [...new Set([...approvals.values()].map((each) => each.agentId))].sort(), [approvals]);
  const isWanted = useCallback((each: PendingApproval) => agentId === "" || each.agentId === agentId, [agentId]);
  const pending = useMemo(() => waiting(approvals, isWanted, marked), [approvals, isWanted, marked]);
  const list = useRef<HTMLUListElement>(null);
  const { shown, outcomes } = useStanding(pending, isWanted, list);
  const { first, more } = useFirst(shown, { step: CARDS });
  useSettling(list);
  return (
    <>
      <div className="view-head">
        <h1>Approvals</h1>
        <span className="quiet" role="status">
          {approvals.size === 0 ? "nothing waits" : `${approvals.size} to decide`}
        </span>
        <span className="space" />
        {(agents.length > 1 || agentId !== "") && (
          <select aria-label="Of which agent" value={agentId} onChange={(event) => setAgentId(event.target.value)}>
            <option value="">All agents</option>
            {[...new Set([...agents, ...(agentId === "" ? [] : [agentId])])].map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        )}
      </div>
      {shown.length === 0 ? (
        <Empty title="Nothing waits for your decision.">
          A tool that needs a person's approval stops its task here until you approve or refuse that exact call. The
          task keeps its place meanwhile: other tasks of the agent wait in its queue, unless its{" "}
          <code>max_concurrent_tasks</code> lets it work at several at once. Tools say so themselves, or a template
          lists them under <code>approve:</code>.
        </Empty>
      ) : (
        <>
          <p className="quiet approvals-keys">
            On a card: <kbd>A</kbd> approves, <kbd>R</kbd> goes to the reason, from where <kbd>Tab</kbd> leads to
            Refuse, <kbd>↑</kbd> <kbd>↓</kbd> go to the others.
          </p>
          <ul ref={list} className="cards">
            {first.map((approval) => (
              <li key={approval.approvalId}>
                <Pending
                  approval={approval}
                  isMarked={approval.approvalId === marked}
                  outcome={outcomes.get(approval.approvalId) ?? null}
                />
              </li>
            ))}
          </ul>
          {more}
        </>
      )}
      <Decided />
    </>
  );
}

/** Those of an agent, or of all, the oldest first; the one that the address names before all if it is far down. */
function waiting(
  approvals: ReadonlyMap<string, PendingApproval>,
  isWanted: (approval: PendingApproval) => boolean,
  marked: string | undefined,
): readonly PendingApproval[] {
  const wanted = [...approvals.values()].filter(isWanted);
  const named = wanted.findIndex((each) => each.approvalId === marked);
  return named < CARDS ? wanted : [...wanted.splice(named, 1), ...wanted];
}
