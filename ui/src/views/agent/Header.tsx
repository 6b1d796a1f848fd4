import { useState } from "react";
import { Link } from "wouter";
import type { StepKind } from "../../client/client";
import { useActing } from "../../parts/acting";
import { count, money, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Lifecycle } from "../../parts/Lifecycle";
import { Progress } from "../../parts/Progress";
import { AgentBadge } from "../../parts/StateBadge";
import { Ago, Since } from "../../parts/Times";
import type { Agent } from "../../projection/world";
import { useAddress } from "../../shell/addresses";
import { useChat } from "../../shell/chatting";
import { useWorld } from "../../state/page";
import { TaskLink } from "./links";
import { Reasons } from "./Reasons";
import { SendTask } from "./SendTask";

const STEP_WORDS: Partial<Record<StepKind, string>> = { model: "model request", compaction: "compaction" };

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
            {step && <span className="tag">{STEP_WORDS[step.kind] ?? step.tool ?? "tool"}</span>}
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
