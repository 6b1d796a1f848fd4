import { useMemo } from "react";
import { Empty, Problem } from "../../parts/Messages";
import { usePlace, useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { usePage, useWorld } from "../../state/page";
import { Decided } from "./Decided";
import { Pending } from "./Pending";
import "./approvals.css";

const MANY = 500;

/** The tool calls that wait for a person, and what was decided on others. */
export default function ApprovalsView() {
  const approvals = useWorld((world) => world.approvals);
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const isPast = usePage((page) => page.playhead !== null);
  const { item: marked } = usePlace();
  const [agentId, setAgentId] = useSelection("agent");
  const asked = useAnswer(
    "approval.list",
    { sessionId, limit: MANY, ...(isPast ? { approvalState: null } : {}) },
    ({ name }) => name.startsWith("approval."),
  );
  const records = useMemo(
    () => new Map(asked.data?.approvals.map((record) => [record.approvalId, record])),
    [asked.data],
  );
  const agents = useMemo(() => [...new Set([...approvals.values()].map((each) => each.agentId))].sort(), [approvals]);
  const shown = useMemo(
    () => [...approvals.values()].filter((each) => agentId === "" || each.agentId === agentId),
    [approvals, agentId],
  );
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
      {asked.error !== null && <Problem error={asked.error} onRetry={asked.again} />}
      {shown.length === 0 ? (
        <Empty title="Nothing waits for your decision.">
          A tool that needs a person's yes stops its task here until you approve or refuse that exact call; all else of
          the agent goes on. Tools say so themselves, or a template lists them under <code>approve:</code>.
        </Empty>
      ) : (
        <>
          <p className="quiet approvals-keys">
            On a card: <kbd>A</kbd> approves, <kbd>R</kbd> goes to the reason for a refusal, <kbd>↑</kbd> <kbd>↓</kbd>{" "}
            go to the others.
          </p>
          <ul className="cards">
            {shown.map((approval) => (
              <li key={approval.approvalId}>
                <Pending
                  approval={approval}
                  record={records.get(approval.approvalId)}
                  isMarked={approval.approvalId === marked}
                />
              </li>
            ))}
          </ul>
        </>
      )}
      <Decided />
    </>
  );
}
