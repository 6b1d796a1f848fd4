import { useMemo, useState } from "react";
import type { StepRecord } from "../../client/client";
import { allAsOf, stepAsOf } from "../../history/asOf";
import { bytes, count, duration, money, words } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { LongText } from "../../parts/LongText";
import { Loaded } from "../../parts/Messages";
import { Since, Until } from "../../parts/Times";
import { useAnswer } from "../../state/answers";
import { changesTask } from "../../state/changes";
import { useHorizon } from "../../state/horizon";
import { usePage } from "../../state/page";
import { CompactionDivider } from "./CompactionDivider";
import { Folded, prettyJson } from "./Folded";
import { StreamText } from "./StreamText";

const SHOWN = 40;

/** The model requests and tool calls of a task in their order, and what is being written now. */
export function Steps({ taskId, isRunning }: { taskId: string; isRunning: boolean }) {
  const [most, setMost] = useState(SHOWN);
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("task.steps", { sessionId, taskId }, (note) => changesTask(note, taskId));
  const at = useHorizon();
  const all = answer.data?.steps;
  const steps = useMemo(() => allAsOf(all ?? [], at, stepAsOf), [all, at]);
  return (
    <Loaded answer={answer}>
      {() => (
        <>
          {steps.length === 0 && !isRunning && <p className="quiet">No step was begun.</p>}
          {steps.length > most && (
            <button type="button" className="agent-older" onClick={() => setMost(most * 2)}>
              Show {steps.length - most} earlier steps
            </button>
          )}
          <ol className="agent-steps" aria-label="Steps">
            {steps.slice(-most).map((step) => (
              <li key={step.number} className="agent-step" data-state={step.state}>
                {step.kind === "compaction" && <StepHead step={step} title="Conversation made shorter" />}
                {step.kind === "compaction" && <CompactionDivider step={step} />}
                {step.kind === "model" && <ModelStep step={step} />}
                {step.kind === "tool" && <ToolStep step={step} />}
              </li>
            ))}
          </ol>
          <StreamText taskId={taskId} />
        </>
      )}
    </Loaded>
  );
}

function ModelStep({ step }: { step: StepRecord }) {
  const { answer } = step;
  const asked = answer === null ? [] : answer.readAs.length > 0 ? answer.readAs : answer.toolCalls;
  return (
    <>
      {step.said?.map(({ taskId, text }) => (
        <div key={taskId} className="agent-said">
          <p className="quiet">Said before this step</p>
          <LongText text={text} />
        </div>
      ))}
      <StepHead step={step} title={["Model request", step.model || answer?.model].filter(Boolean).join(" · ")}>
        {answer !== null && (
          <>
            <span>{words(answer.finish)}</span>
            <span>
              {count(answer.usage.inputTokens)} in
              {answer.usage.cachedTokens > 0 && ` (${count(answer.usage.cachedTokens)} cached)`},{" "}
              {count(answer.usage.outputTokens)} out
            </span>
            <span>{money(answer.usage.costUsd)}</span>
          </>
        )}
      </StepHead>
      {answer !== null && (
        <>
          <Folded title="Reasoning" text={answer.reasoning} />
          {answer.text !== "" && <LongText text={answer.text} />}
          {answer.objection !== "" && (
            <div className="agent-result agent-result-error">
              <span className="quiet">Objection</span>
              <LongText text={answer.objection} />
            </div>
          )}
          {asked.length > 0 && (
            <p className="agent-calls">
              <span className="quiet">{answer.readAs.length > 0 ? "was read as " : "asks for "}</span>
              {asked.map((call) => (
                <code key={call.callId} className="tag">
                  {call.name}
                </code>
              ))}
            </p>
          )}
        </>
      )}
    </>
  );
}

function ToolStep({ step }: { step: StepRecord }) {
  const { call, result } = step;
  const run = result?.run ?? null;
  return (
    <>
      <StepHead step={step} title={call?.name ?? "Tool call"}>
        {run !== null && (
          <span title="The sandbox that held its processes, and what they took">
            {run.sandbox}: {duration(run.wallSeconds)}, {duration(run.cpuSeconds)} of processor,{" "}
            {bytes(run.memoryBytes)}
          </span>
        )}
        {run !== null && run.limit !== "" && <span className="tag agent-bad">ended at {words(run.limit)}</span>}
        {result?.untrusted && (
          <span className="tag agent-warn" title="It may hold what strangers have written.">
            untrusted
          </span>
        )}
        {result?.notRun && <span className="tag">not run</span>}
      </StepHead>
      {call !== null && call.arguments !== "" && call.arguments !== "{}" && (
        <LongText text={prettyJson(call.arguments)} mono />
      )}
      {result !== null && (
        <div className={result.isError ? "agent-result agent-result-error" : "agent-result"}>
          <span className="quiet">{result.isError ? "Error" : "Result"}</span>
          <LongText text={result.content} mono />
        </div>
      )}
    </>
  );
}

interface StepHeadProps {
  step: StepRecord;
  title: string;
  children?: React.ReactNode;
}

function StepHead({ step, title, children }: StepHeadProps) {
  return (
    <>
      <div className="agent-step-head">
        <span className="quiet agent-number">{step.number}</span>
        <Icon name={step.kind === "tool" ? "tools" : "agent"} size={14} />
        <strong>{title}</strong>
        <span className="agent-row-facts quiet">
          {children}
          <StepTime step={step} />
          {step.attempt > 1 && <span className="tag">{count(step.attempt)} attempts</span>}
          {step.requests > 1 && <span>{count(step.requests)} requests</span>}
          {step.state === "unknown" && (
            <span className="tag agent-warn" title="It was cut off, and may have had its effect.">
              cut off
            </span>
          )}
        </span>
      </div>
      {step.error !== null && (
        <p className="agent-error">
          {step.error.message}
          {step.retryAt !== null && step.finishedAt === null && (
            <>
              {" "}
              It is tried again <Until at={step.retryAt} />.
            </>
          )}
        </p>
      )}
    </>
  );
}

function StepTime({ step }: { step: StepRecord }) {
  if (step.finishedAt === null)
    return (
      <span>
        for <Since at={step.startedAt} />
      </span>
    );
  return <span>{duration(step.finishedAt - step.startedAt)}</span>;
}
