import { type NodeProps, useStore } from "@xyflow/react";
import { memo } from "react";
import { count, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { lookOf } from "../../parts/looks";
import { AgentBadge } from "../../parts/StateBadge";
import { Until } from "../../parts/Times";
import type { Agent } from "../../projection/world";
import { useWorld } from "../../state/page";

/** Below this zoom nothing smaller than a name can be read. */
const FAR = 0.5;

export function useIsFar(): boolean {
  return useStore((flow) => flow.transform[2] < FAR);
}

/**
 * Where lines begin and end; it is measured, not seen. The flow finds it by its classes. Its own components for this
 * would be two to a node, each of which looks at every change of the view.
 */
function Middle() {
  return <i className="source target graph-middle" data-handlepos="top" />;
}

/** An agent in the graph. It looks at its own agent only, so that the graph is not drawn anew when that changes. */
export const AgentNode = memo(function AgentNode({ id }: NodeProps) {
  const agent = useWorld((world) => world.agents.get(id));
  const isFar = useIsFar();
  if (agent === undefined) return null;
  const look = lookOf(agent);
  if (isFar) {
    return (
      <div className="graph-node graph-node-far" data-state={look}>
        <span className="graph-node-title">{agent.name}</span>
        <span className="visually-hidden">{words(look)}</span>
        <Middle />
      </div>
    );
  }
  return (
    <div className="graph-node" data-state={look}>
      <div className="graph-node-head">
        <span className="graph-node-title ellipsis" title={agent.name}>
          {agent.name}
        </span>
        <AgentBadge agent={agent} />
      </div>
      <Doing agent={agent} />
      <div className="graph-node-foot">
        {agent.progressPercent !== null && (
          <progress max={100} value={agent.progressPercent} aria-label={agent.progressNote || "Progress"} />
        )}
        <Counts agent={agent} />
      </div>
      <Middle />
    </div>
  );
});

function Doing({ agent }: { agent: Agent }) {
  const [taskId = ""] = agent.runningTasks;
  const summary = useWorld((world) => world.tasks.get(taskId)?.summary ?? "");
  if (agent.state === "sleeping") {
    return (
      <p className="graph-node-text quiet">
        {agent.sleepingUntil === null ? `until ${agent.wakeEvents.join(", ") || "it is woken"}` : "wakes "}
        {agent.sleepingUntil !== null && <Until at={agent.sleepingUntil} />}
      </p>
    );
  }
  const text = agent.currentTask === null ? agent.reason || agent.description : summary || words(agent.currentTask);
  return (
    <p className={agent.currentTask === null ? "graph-node-text quiet" : "graph-node-text"} title={text}>
      {text}
    </p>
  );
}

function Counts({ agent }: { agent: Agent }) {
  return (
    <span className="graph-node-counts">
      {agent.queueSize > 0 && (
        <span title="Tasks that wait">
          <Icon name="more" size={12} /> {count(agent.queueSize)} queued
        </span>
      )}
      {agent.unreadMail > 0 && (
        <span title="Mails that it has not read">
          <Icon name="inbox" size={12} /> {count(agent.unreadMail)} unread
        </span>
      )}
    </span>
  );
}

/** The people around the agents, and the programs. */
export const UserNode = memo(function UserNode() {
  const unread = useWorld((world) => world.inbox.size);
  const approvals = useWorld((world) => world.approvals.size);
  const questions = useWorld((world) => world.questions.size);
  const isFar = useIsFar();
  return (
    <div className={isFar ? "graph-node graph-node-far graph-user" : "graph-node graph-user"}>
      <div className="graph-node-head">
        <Icon name="user" />
        <span className="graph-node-title">You</span>
      </div>
      {!isFar && <p className="graph-node-text quiet">{asked(unread, approvals, questions)}</p>}
      <Middle />
    </div>
  );
});

function asked(mails: number, approvals: number, questions: number): string {
  const parts = [];
  if (mails > 0) parts.push(`${mails} in the inbox`);
  if (approvals > 0) parts.push(`${approvals} to decide`);
  if (questions > 0) parts.push(`${questions} to answer`);
  return parts.join(", ") || "People and programs outside";
}
