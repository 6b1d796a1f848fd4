import { useMemo, useState } from "react";
import { Link } from "wouter";
import { AgentLink } from "../../parts/AgentLink";
import { useActing } from "../../parts/acting";
import { count, money, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Lifecycle } from "../../parts/Lifecycle";
import { failedTasks } from "../../parts/looks";
import { Progress } from "../../parts/Progress";
import { AgentBadge } from "../../parts/StateBadge";
import { Ago, Since, Until } from "../../parts/Times";
import type { Agent } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { useChat } from "../../shell/chatting";
import { useWorld } from "../../state/page";
import { TaskLink, useLimitsAddress } from "./links";
import { SendTask } from "./SendTask";
import { type Why, whys } from "./why";

/** Who the agent is, what it does and why, and everything that can be done with it. */
export function Header({ agent }: { agent: Agent }) {
  const { usage } = agent;
  return (
    <header className="agent-head">
      <div className="view-head">
        <Icon name="agent" size={22} />
        <h1>{agent.name || agent.agentId}</h1>
        <AgentBadge agent={agent} />
        {agent.name !== agent.agentId && <code className="quiet">{agent.agentId}</code>}
        <span className="space" />
        <Talk agent={agent} />
      </div>
      {agent.description && <p className="agent-description">{agent.description}</p>}
      <Reasons agent={agent} />
      <Running agent={agent} />
      <p className="quiet agent-facts">
        <span>{count(agent.queueSize)} queued</span>
        <span>{count(agent.unreadMail)} unread</span>
        <span>{agent.tasks === 1 ? "1 task" : `${count(agent.tasks)} tasks`} begun</span>
        <span>{count(usage.inputTokens + usage.outputTokens)} tokens</span>
        <span>{money(usage.costUsd)}</span>
        <span>
          active <Ago at={agent.lastActivityAt} />
        </span>
      </p>
      <Lifecycle agent={agent} />
    </header>
  );
}

function Reasons({ agent }: { agent: Agent }) {
  const waits = useWorld((world) => world.waits);
  const found = useMemo(() => whys(agent, waits.values()), [agent, waits]);
  if (found.length === 0) return null;
  return (
    <ul className="agent-whys" aria-label="Reasons">
      {found.map((why) => (
        <li key={JSON.stringify(why)}>
          <Reason why={why} agentId={agent.agentId} />
        </li>
      ))}
    </ul>
  );
}

function Reason({ why, agentId }: { why: Why; agentId: string }) {
  const to = useAddress();
  const limitsOf = useLimitsAddress();
  switch (why.kind) {
    case "text":
      return <span>{why.text}</span>;
    case "sleep":
      return (
        <span>
          {why.isAsleep ? "Wakes" : "Is to sleep after that; wakes"} {why.until !== null && <Until at={why.until} />}
          {why.until !== null && why.events.length > 0 && ", or"}
          {why.events.length > 0 && <> at {why.events.length === 1 ? "the event" : "one of the events"} </>}
          {why.events.map((event) => (
            <code key={event} className="tag">
              {event}
            </code>
          ))}
          {why.until === null && why.events.length === 0 && "when somebody wakes it"}
        </span>
      );
    case "limit":
      return (
        <span>
          Paused at its limit <code>{why.limit}</code>: it resumes when that is raised.{" "}
          <Link href={limitsOf(agentId)}>Raise it</Link>
        </span>
      );
    case "dead":
      return (
        <span>
          {failedTasks(why.count)}: retry or dismiss {why.count === 1 ? "it" : "them"} among the{" "}
          <Link href={`${to("dead")}?agent=${encodeURIComponent(agentId)}`}>dead letters</Link>.
        </span>
      );
    case "retry":
      return (
        <span>
          Waits for its model, and asks again <Until at={why.at} />
          {why.reason !== "" && `: ${why.reason}`}
        </span>
      );
    case "tools":
      return (
        <span>
          Waits for tools that were not provided: {why.tools.join(", ")}. Start the program that has them, or{" "}
          <Link href={to("tools")}>see which tools there are</Link>.
        </span>
      );
    default:
      return <WaitFor why={why} />;
  }
}

function WaitFor({ why }: { why: Extract<Why, { wait: unknown }> }) {
  const to = useAddress();
  return (
    <span>
      {why.kind === "agent" && (
        <>
          Waits for an answer of <AgentLink agentId={why.target} />
        </>
      )}
      {why.kind === "lock" && (
        <>
          Waits for the lock <Link href={to("locks", why.target)}>{why.target}</Link>
        </>
      )}
      {why.kind === "approval" && (
        <>
          Waits for a person to <Link href={to("approvals", why.target)}>allow a tool call</Link>
        </>
      )}
      {why.kind === "resource" && <>Waits for its turn at {why.target}</>}
      {why.wait !== null && why.kind !== "agent" && why.wait.holders.length > 0 && (
        <>
          , which {why.wait.holders.length === 1 ? "is" : "are"} with{" "}
          {why.wait.holders.map((holder, index) => (
            <span key={holder}>
              {index > 0 && ", "}
              <AgentLink agentId={holder} />
            </span>
          ))}
        </>
      )}
      {why.wait !== null && (
        <>
          {" "}
          for <Since at={why.wait.since} />
          {why.wait.deadlineAt !== null && (
            <>
              , gives up <Until at={why.wait.deadlineAt} />
            </>
          )}
        </>
      )}
    </span>
  );
}

function Running({ agent }: { agent: Agent }) {
  const tasks = useWorld((world) => world.tasks);
  if (agent.runningTasks.length === 0) return null;
  return (
    <ul className="agent-running" aria-label="Running tasks">
      {agent.runningTasks.slice(0, 5).map((taskId) => {
        const task = tasks.get(taskId);
        const [step] = task?.steps.values() ?? [];
        return (
          <li key={taskId}>
            <TaskLink agentId={agent.agentId} taskId={taskId}>
              {words(task?.kind ?? "task")}
            </TaskLink>{" "}
            {task?.startedAt && (
              <span className="quiet">
                for <Since at={task.startedAt} />
              </span>
            )}
            {step && <span className="tag">{step.kind === "model" ? "model request" : (step.tool ?? "tool")}</span>}
            {task && <Progress percent={task.progressPercent} note={task.progressNote} />}
          </li>
        );
      })}
      {agent.runningTasks.length > 5 && <li className="quiet">and {agent.runningTasks.length - 5} more</li>}
    </ul>
  );
}

function Talk({ agent }: { agent: Agent }) {
  const [isSending, setIsSending] = useState(false);
  const talking = useActing("Talk with it");
  const giving = useActing("Give it something to do");
  const to = useAddress();
  const { roomId, begin } = useChat(agent.agentId);
  return (
    <>
      {roomId !== null ? (
        <Link href={to("chats", roomId)} className="agent-chat">
          <Icon name="chats" size={14} /> Chat
        </Link>
      ) : (
        <button type="button" {...talking} onClick={begin}>
          <Icon name="chats" size={14} /> Chat
        </button>
      )}
      <button type="button" className="primary" {...giving} onClick={() => setIsSending(true)}>
        <Icon name="send" size={14} /> Send a task
      </button>
      {isSending && <SendTask agent={agent} onClose={() => setIsSending(false)} />}
    </>
  );
}
