import { useMemo } from "react";
import { Link } from "wouter";
import { useActing } from "../../parts/acting";
import { count, money, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { lookHint } from "../../parts/looks";
import { Empty } from "../../parts/Messages";
import { Progress } from "../../parts/Progress";
import { AgentBadge } from "../../parts/StateBadge";
import { Ago, Since, Until } from "../../parts/Times";
import { USER } from "../../projection/coordination";
import type { Agent } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { useChat } from "../../shell/chatting";
import { useWorld } from "../../state/page";
import { useWorldSlowly } from "../../state/slowly";
import type { Picked } from "./choices";
import { counted } from "./kinds";
import { useName } from "./names";
import { pairOf } from "./scene";
import { waitChains, waitLines } from "./waits";

interface NodePanelProps {
  readonly id: string;
  readonly onPick: (picked: Partial<Picked>) => void;
}

/** What an agent, or the user, does and has to do with others. */
export function NodePanel({ id, onPick }: NodePanelProps) {
  const agent = useWorld((world) => world.agents.get(id));
  if (id === USER) return <UserPanel onPick={onPick} />;
  if (agent === undefined) {
    return <Empty title={`There is no agent ${id}`}>It may not have been created yet at this time.</Empty>;
  }
  return (
    <>
      <h2 className="graph-panel-title">{agent.name}</h2>
      {agent.description && <p className="quiet">{agent.description}</p>}
      <AgentLinks agent={agent} />
      <Facts agent={agent} />
      <Work agent={agent} />
      <Chains id={id} onPick={onPick} />
      <Neighbours id={id} onPick={onPick} />
    </>
  );
}

function UserPanel({ onPick }: Pick<NodePanelProps, "onPick">) {
  const address = useAddress();
  const [mails, approvals] = [useWorld((world) => world.inbox.size), useWorld((world) => world.approvals.size)];
  const questions = useWorld((world) => world.questions.size);
  return (
    <>
      <h2 className="graph-panel-title">You</h2>
      <p className="quiet">You, and all other people and programs that talk with the agents from outside.</p>
      <div className="graph-links">
        <Link href={address("inbox")}>Inbox ({mails})</Link>
        <Link href={address("approvals")}>Approvals ({approvals})</Link>
        <Link href={address("questions")}>Questions ({questions})</Link>
      </div>
      <Chains id={USER} onPick={onPick} />
      <Neighbours id={USER} onPick={onPick} />
    </>
  );
}

function AgentLinks({ agent }: { agent: Agent }) {
  const address = useAddress();
  const acting = useActing();
  const { roomId, begin } = useChat(agent.agentId);
  return (
    <div className="graph-links">
      <Link href={address("agents", agent.agentId)}>Its page</Link>
      {roomId !== null && <Link href={address("chats", roomId)}>Chat with it</Link>}
      {roomId === null && (
        <button type="button" {...acting} onClick={begin}>
          Begin a chat
        </button>
      )}
    </div>
  );
}

function Facts({ agent }: { agent: Agent }) {
  const { usage } = agent;
  return (
    <dl className="graph-facts">
      <dt>State</dt>
      <dd>
        <AgentBadge agent={agent} /> <span className="quiet">{lookHint(agent)}</span>
      </dd>
      {agent.sleepingUntil !== null && (
        <>
          <dt>Wakes</dt>
          <dd>
            <Until at={agent.sleepingUntil} />
          </dd>
        </>
      )}
      {agent.wakeEvents.length > 0 && (
        <>
          <dt>Wakes on</dt>
          <dd>{agent.wakeEvents.join(", ")}</dd>
        </>
      )}
      <dt>Queue</dt>
      <dd>{count(agent.queueSize)}</dd>
      <dt>Unread mail</dt>
      <dd>{count(agent.unreadMail)}</dd>
      <dt>Used</dt>
      <dd>
        {count(usage.inputTokens + usage.outputTokens)} tokens, {money(usage.costUsd)}
      </dd>
      <dt>Last active</dt>
      <dd>
        <Ago at={agent.lastActivityAt} />
      </dd>
    </dl>
  );
}

function Work({ agent }: { agent: Agent }) {
  const address = useAddress();
  const tasks = useWorld((world) => world.tasks);
  const running = agent.runningTasks.flatMap((taskId) => tasks.get(taskId) ?? []);
  if (running.length === 0) return <p className="quiet">It does nothing right now.</p>;
  return (
    <>
      <h3>Does now</h3>
      <ul className="graph-tasks">
        {running.map((task) => (
          <li key={task.taskId}>
            <Link href={`${address("agents", agent.agentId)}?task=${encodeURIComponent(task.taskId)}`}>
              {task.summary || words(task.kind)}
            </Link>{" "}
            <span className="quiet">for {task.startedAt !== null && <Since at={task.startedAt} />}</span>
            {(task.progressPercent !== null || task.progressNote) && (
              <Progress percent={task.progressPercent} note={task.progressNote} />
            )}
            {[...task.steps.values()].map((step) => (
              <p key={step.stepId} className="quiet">
                {step.tool ?? `${step.kind} request`} for <Since at={step.startedAt} />
              </p>
            ))}
          </li>
        ))}
      </ul>
    </>
  );
}

function Chains({ id, onPick }: NodePanelProps) {
  const name = useName();
  const world = useWorldSlowly((world) => world);
  const { agents, waits, locks } = world;
  const chains = useMemo(
    () => waitChains(waitLines({ agents, waits, locks })).filter((chain) => chain.includes(id)),
    [agents, waits, locks, id],
  );
  if (chains.length === 0) return null;
  return (
    <>
      <h3>Waits</h3>
      {chains.map((chain) => (
        <Chain key={chain.join("~")} chain={chain} name={name} onPick={onPick} />
      ))}
    </>
  );
}

interface ChainProps {
  readonly chain: readonly string[];
  readonly name: (id: string) => string;
  readonly onPick: (picked: Partial<Picked>) => void;
}

/** Who waits for whom, who waits for whom. */
export function Chain({ chain, name, onPick }: ChainProps) {
  return (
    <ol className="graph-chain">
      {chain.map((id, index) => (
        <li key={id}>
          {index > 0 && <span title="waits for">⇢ </span>}
          <button type="button" className="graph-plain" onClick={() => onPick({ node: id })}>
            {name(id)}
          </button>
        </li>
      ))}
    </ol>
  );
}

function Neighbours({ id, onPick }: NodePanelProps) {
  const name = useName();
  const world = useWorldSlowly((world) => world);
  const links = useMemo(
    () =>
      [...world.links.values()]
        .filter(({ from, to }) => (from === id || to === id) && from !== to)
        .sort((a, b) => b.lastAt - a.lastAt),
    [world.links, id],
  );
  if (links.length === 0) return <p className="quiet">It has had to do with nobody yet.</p>;
  return (
    <>
      <h3>Has to do with</h3>
      <ul className="graph-neighbours">
        {links.slice(0, 100).map((link) => (
          <li key={`${link.kind} ${pairOf(link)}`}>
            <button type="button" className="graph-plain" onClick={() => onPick({ edge: pairOf(link) })}>
              <Icon name={link.from === id ? "forward" : "back"} size={13} />
              <span className="visually-hidden">{link.from === id ? "to" : "from"}</span>
              <span className="ellipsis">{name(link.from === id ? link.to : link.from)}</span>
            </button>
            <span className="quiet">{counted(link.kind, link.count)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
