import { useId, useState } from "react";
import { Asking } from "../../parts/Asking";
import { restOf } from "../../parts/hindrances";
import { useIdOf } from "../../parts/ids";
import { PriorityField } from "../../parts/PriorityField";
import type { Agent } from "../../projection/world";
import { useLeading } from "../../shell/addresses";
import { attempt, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { usePage } from "../../state/page";
import { useAgentAddress } from "./links";
import { NO_TASK, type TaskForm, taskParams } from "./taskForm";

/** Gives the agent something to do, and leads to the task. */
export function SendTask({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const [form, setForm] = useState<TaskForm>(NO_TASK);
  const taskId = useIdOf(form);
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const threads = useAnswer("task.threads", { sessionId, agentId: agent.agentId });
  const threadsId = useId();
  const lead = useLeading();
  const at = useAgentAddress();
  const change = (fields: Partial<TaskForm>) => setForm({ ...form, ...fields });
  async function send() {
    const params = taskParams(form);
    if (typeof params === "string") return params;
    const task = await attempt("async.sendTask", { agentId: agent.agentId, taskId, ...params });
    const rest = restOf(agent);
    notify(rest === null ? "The task was sent." : `The task was sent. It waits: the agent ${rest}.`);
    lead(at(agent.agentId, { task: task.taskId }));
    return undefined;
  }
  const number = (label: string, name: "timeoutSeconds" | "maxTokens" | "maxCostUsd", example: string) => (
    <label className="field">
      {label}
      <input
        inputMode="decimal"
        placeholder={`no limit, or such as ${example}`}
        value={form[name]}
        onChange={(event) => change({ [name]: event.target.value })}
      />
    </label>
  );
  return (
    <Asking title={`A task for ${agent.name || agent.agentId}`} action="Send" onSubmit={send} onClose={onClose}>
      <label className="field">
        What it is to do
        <textarea rows={6} value={form.prompt} onChange={(event) => change({ prompt: event.target.value })} />
      </label>
      <div className="agent-fields">
        <PriorityField value={form.priority} onChange={(priority) => change({ priority })} />
        <label className="field">
          Thread
          <input
            list={threadsId}
            placeholder="a new one"
            value={form.threadId}
            onChange={(event) => change({ threadId: event.target.value })}
          />
          <datalist id={threadsId}>
            {threads.data?.threads.map(({ threadId }) => (
              <option key={threadId} value={threadId} />
            ))}
          </datalist>
        </label>
        {number("Seconds it may take", "timeoutSeconds", "600")}
        {number("Tokens it may use", "maxTokens", "50000")}
        {number("Dollars it may cost", "maxCostUsd", "0.50")}
      </div>
      {agent.runningTasks.length > 0 && (
        <label className="choice">
          <input
            type="checkbox"
            checked={form.isForNextStep}
            onChange={(event) => change({ isForNextStep: event.target.checked })}
          />
          A message to the task at work: tell it before its next step
        </label>
      )}
      <p className="quiet">Time and budget hold for the task together with everything that it causes.</p>
    </Asking>
  );
}
