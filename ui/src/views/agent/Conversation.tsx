import { useMemo, useState } from "react";
import { Link } from "wouter";
import type { Notification, StepRecord, TaskRecord } from "../../client/client";
import { allAsOf, stepAsOf, taskAsOf } from "../../history/asOf";
import { Attachments } from "../../parts/Attachments";
import { words } from "../../parts/format";
import { LongText } from "../../parts/LongText";
import { Loaded } from "../../parts/Messages";
import { At } from "../../parts/Times";
import { useAnswer } from "../../state/answers";
import { changesTask, changesTasks } from "../../state/changes";
import { useHorizon } from "../../state/horizon";
import { useNewest } from "../../state/newest";
import { usePage } from "../../state/page";
import { CompactionDivider } from "./CompactionDivider";
import { Folded, prettyJson } from "./Folded";
import { TaskLink, useAgentAddress } from "./links";
import { StreamText } from "./StreamText";

const TASKS = 200;
const SHOWN = 8;

/** A thread in its order, as the model sees it: what it was told, what it answered, which tools it called. */
export function Conversation({ agentId, threadId }: { agentId: string; threadId: string }) {
  const [limit, setLimit] = useState(TASKS);
  const [most, setMost] = useState(SHOWN);
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const refreshOn = (note: Notification) => changesTasks(note, agentId);
  const answer = useNewest("task.list", { sessionId, agentId }, { wanted: limit, refreshOn });
  const at = useHorizon();
  const link = useAgentAddress();
  const all = answer.data?.tasks;
  const tasks = useMemo(() => ofThread(all ?? [], threadId, at), [all, threadId, at]);
  const mayHaveMore = answer.hasOlder;
  function showEarlier() {
    setMost(most * 2);
    if (mayHaveMore && tasks.length <= most * 2) setLimit(limit * 4);
  }
  return (
    <div className="agent-details">
      <p className="quiet">
        Before all of this the model is told{" "}
        <Link href={link(agentId, { tab: "definition" })}>the prompt of its definition</Link>.
      </p>
      <Loaded answer={answer}>
        {() => (
          <>
            {(tasks.length > most || mayHaveMore) && (
              <button type="button" className="agent-older" onClick={showEarlier}>
                Show earlier
              </button>
            )}
            {tasks.slice(-most).map((task) => (
              <Turns key={task.taskId} task={task} />
            ))}
          </>
        )}
      </Loaded>
    </div>
  );
}

/** The tasks of a thread in the order in which they came. */
export function ofThread(tasks: readonly TaskRecord[], threadId: string, at: number): TaskRecord[] {
  const those = tasks.filter((task) => task.threadId === threadId);
  return allAsOf(those, at, taskAsOf).sort((one, other) => one.arrival - other.arrival);
}

function Turns({ task }: { task: TaskRecord }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const { taskId } = task;
  const answer = useAnswer("task.steps", { sessionId, taskId }, (note) => changesTask(note, taskId));
  const at = useHorizon();
  const all = answer.data?.steps;
  const steps = useMemo(() => allAsOf(all ?? [], at, stepAsOf), [all, at]);
  return (
    <section className="agent-turns" aria-label={`Task ${taskId}`}>
      <div className="agent-turn" data-by="told">
        <p className="quiet agent-row-facts">
          <TaskLink agentId={task.agentId} taskId={taskId}>
            {words(task.kind)}
          </TaskLink>
          <At at={task.createdAt} />
          {task.state !== "completed" && <span className="tag">{task.state}</span>}
        </p>
        {task.notes !== null && <Folded title="Its notes" text={task.notes} />}
        <LongText text={task.prompt} />
        <Attachments parts={task.parts} />
        {task.origin?.outputSchema != null && (
          <Folded title="The schema of its answer" text={JSON.stringify(task.origin.outputSchema, null, 2)} mono />
        )}
      </div>
      {steps.map((step) => (
        <Turn key={step.number} step={step} />
      ))}
      <StreamText taskId={taskId} />
    </section>
  );
}

function Turn({ step }: { step: StepRecord }) {
  const { answer, result, call } = step;
  if (step.kind === "compaction") return <CompactionDivider step={step} />;
  if (step.kind === "tool")
    return (
      <div className="agent-turn" data-by="tool">
        <p className="quiet">
          {call?.name ?? "tool"}
          {result === null ? " …" : result.isError ? " failed" : " answered"}
          {result?.untrusted && <span className="tag agent-warn">untrusted</span>}
        </p>
        {result !== null && <LongText text={result.content} mono />}
      </div>
    );
  if (answer === null) return null;
  return (
    <>
      <div className="agent-turn" data-by="model">
        <Folded title="Reasoning" text={answer.reasoning} />
        {answer.text !== "" && <LongText text={answer.text} />}
        {(answer.readAs.length > 0 ? answer.readAs : answer.toolCalls).map((asked) => (
          <div key={asked.callId}>
            <code className="tag">{asked.name}</code>
            <LongText text={prettyJson(asked.arguments)} mono />
          </div>
        ))}
      </div>
      {answer.objection !== "" && (
        <div className="agent-turn" data-by="told">
          <LongText text={answer.objection} />
        </div>
      )}
    </>
  );
}
