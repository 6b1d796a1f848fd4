import { useMemo } from "react";
import type { TaskRecord } from "../../client/client";
import { AgentLink } from "../../parts/AgentLink";
import { StateBadge } from "../../parts/StateBadge";
import { TaskLink } from "./links";
import { titleOf } from "./taskRows";
import { branches } from "./tree";

const SHOWN = 200;
const DEEPEST = 8;

/** What caused what, over all agents. */
export function TaskTree({ tasks, shown }: { tasks: readonly TaskRecord[]; shown: string }) {
  const all = useMemo(() => branches(tasks), [tasks]);
  return (
    <ul className="agent-tree">
      {all.slice(0, SHOWN).map(({ task, depth }) => (
        <li
          key={task.taskId}
          aria-current={task.taskId === shown ? "true" : undefined}
          style={{ paddingInlineStart: `${Math.min(depth, DEEPEST) * 18 + 6}px` }}
        >
          <StateBadge state={task.state} />
          <AgentLink agentId={task.agentId} />
          <span className="ellipsis">
            {task.taskId === shown ? (
              <strong>{titleOf(task.kind, task.prompt)}</strong>
            ) : (
              <TaskLink agentId={task.agentId} taskId={task.taskId}>
                {titleOf(task.kind, task.prompt) || task.taskId}
              </TaskLink>
            )}
          </span>
        </li>
      ))}
      {all.length > SHOWN && <li className="quiet">and {all.length - SHOWN} more</li>}
    </ul>
  );
}
