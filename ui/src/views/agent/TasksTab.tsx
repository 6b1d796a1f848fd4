import { memo, useMemo, useState } from "react";
import type { Notification, TaskState } from "../../client/client";
import { useFirst } from "../../parts/First";
import { duration, words } from "../../parts/format";
import { Empty, Problem } from "../../parts/Messages";
import { Progress } from "../../parts/Progress";
import { StateBadge } from "../../parts/StateBadge";
import { Ago, Since } from "../../parts/Times";
import { useSelection } from "../../shell/addresses";
import { useAnswer } from "../../state/answers";
import { changesTask, changesTasks } from "../../state/changes";
import { useHorizon } from "../../state/horizon";
import { useNewest } from "../../state/newest";
import { usePage, useWorld } from "../../state/page";
import { Item, Older, StateFilter } from "./Listing";
import { TaskDetails } from "./TaskDetails";
import { type TaskRow, taskRows } from "./taskRows";

const STATES: readonly TaskState[] = [
  "queued",
  "running",
  "completed",
  "continued",
  "joined",
  "failed",
  "cancelled",
  "dead",
];
const PAGE = 50;

/** All that the agent was given to do, the newest first. One of them can be opened. */
export function TasksTab({ agentId }: { agentId: string }) {
  const [limit, setLimit] = useState(PAGE);
  const [state, setState] = useSelection("state");
  const [opened, open] = useSelection("task");
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const refreshOn = (note: Notification) => changesTasks(note, agentId);
  const tasks = useNewest("task.list", { sessionId, agentId }, { wanted: limit, refreshOn });
  const openTasks = useWorld((world) => world.tasks);
  const at = useHorizon();
  const records = tasks.data?.tasks;
  const rows = useMemo(
    () => taskRows(records ?? [], openTasks, { agentId, state, at, limit }),
    [records, openTasks, agentId, state, at, limit],
  );
  const including = opened === "" ? -1 : rows.findIndex(({ taskId }) => taskId === opened);
  const { first, more } = useFirst(rows, { step: PAGE * 4, including });
  const isListed = opened === "" || including !== -1;
  return (
    <>
      <div className="view-head">
        <StateFilter states={STATES} value={state} onChange={setState} />
      </div>
      {!isListed && records !== undefined && <Unlisted taskId={opened} agentId={agentId} onClose={() => open("")} />}
      {tasks.error !== null && <Problem error={tasks.error} onRetry={tasks.again} />}
      {rows.length === 0 && tasks.isLoading && (
        <p className="loading" role="status">
          Loading…
        </p>
      )}
      {records !== undefined && !tasks.isLoading && rows.length === 0 && <NoTasks state={state} />}
      <ul className="agent-list">
        {first.map((row) => (
          <TaskItem
            key={row.taskId}
            row={row}
            isOpen={row.taskId === opened}
            onToggle={() => open(row.taskId === opened ? "" : row.taskId)}
          />
        ))}
      </ul>
      {more}
      <Older newest={tasks} what="tasks" onMore={() => setLimit(limit * 2)} />
    </>
  );
}

function NoTasks({ state }: { state: string }) {
  if (state !== "") return <Empty title={`No ${state} task among those that were loaded.`} />;
  return (
    <Empty title="Nothing was asked of it yet.">
      Its tasks come from you, from mail, from other agents, from schedules and from events. “Send a task” gives it one.
    </Empty>
  );
}

interface TaskItemProps {
  row: TaskRow;
  isOpen: boolean;
  onToggle: () => void;
}

const TaskItem = memo(
  function TaskItem({ row, isOpen, onToggle }: TaskItemProps) {
    const line = (
      <>
        <StateBadge state={row.state} />
        <span className="agent-row-title ellipsis" dir="auto">
          {row.title || <span className="quiet">(no text)</span>}
        </span>
        <span className="agent-row-facts quiet">
          <span>{words(row.kind)}</span>
          {row.priority !== "normal" && <span className="tag">{row.priority}</span>}
          <TaskTime row={row} />
        </span>
      </>
    );
    return (
      <Item isOpen={isOpen} onToggle={onToggle} line={line}>
        {row.state === "running" && (row.progressPercent !== null || row.progressNote !== "") && (
          <div className="agent-row-progress">
            <Progress percent={row.progressPercent} note={row.progressNote} />
          </div>
        )}
        {isOpen && row.record !== null && <TaskDetails record={row.record} row={row} />}
      </Item>
    );
  },
  (before, after) => before.row === after.row && before.isOpen === after.isOpen,
);

function TaskTime({ row }: { row: TaskRow }) {
  if (row.state === "running" && row.startedAt !== null)
    return (
      <span>
        for <Since at={row.startedAt} />
      </span>
    );
  return (
    <>
      {row.startedAt !== null && row.finishedAt !== null && <span>{duration(row.finishedAt - row.startedAt)}</span>}
      <Ago at={row.createdAt} />
    </>
  );
}

/** The task that the address names, if the list does not have it: an older one, or one of another agent. */
function Unlisted({ taskId, agentId, onClose }: { taskId: string; agentId: string; onClose: () => void }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("task.get", { sessionId, taskId }, (note) => changesTask(note, taskId));
  const openTasks = useWorld((world) => world.tasks);
  const at = useHorizon();
  const task = answer.data;
  const [row] = useMemo(() => {
    if (task === undefined) return [];
    return taskRows([task], new Map(), { agentId: task.agentId, state: "", at, limit: 1 });
  }, [task, at]);
  if (answer.error !== null && task === undefined) return <Problem error={answer.error} onRetry={answer.again} />;
  if (task === undefined) return null;
  if (row === undefined) return <Empty title="The task that the address names was not there yet at this time." />;
  return (
    <div className="agent-unlisted">
      {task.agentId !== agentId && <p className="quiet">This is a task of {task.agentId}.</p>}
      <ul className="agent-list">
        <TaskItem row={{ ...row, state: openTasks.get(taskId)?.state ?? row.state }} isOpen onToggle={onClose} />
      </ul>
    </div>
  );
}
