import { useState } from "react";
import type { Priority } from "../client/client";
import { Asking } from "../parts/Asking";
import { Confirm } from "../parts/Dialog";
import { useIdOf } from "../parts/ids";
import { PriorityField } from "../parts/PriorityField";
import { perform, performAsked } from "./bulk";
import { ACTIONS, type Action, verbOf } from "./lifecycle";
import { type SleepForm, sleepParams } from "./sleep";
import { agentsInWords, firstOf } from "./text";

interface SteerProps {
  agentIds: readonly string[];
  onClose: () => void;
}

/** Asks what has to be known before something is done to agents, and does it. */
export function SteerDialog({ action, ...props }: SteerProps & { action: Action }) {
  if (action === "sleep") return <SleepDialog {...props} />;
  if (action === "wake") return <WakeDialog {...props} />;
  if (action === "task") return <TaskDialog {...props} />;
  if (action === "delete") return <DeleteDialog {...props} />;
  if (action === "pause" || action === "interrupt") return <PauseDialog action={action} {...props} />;
  return <StopDialog {...props} />;
}

function StopDialog({ agentIds, onClose }: SteerProps) {
  return (
    <Confirm
      title={`Stop ${agentsInWords(agentIds)}?`}
      action="Stop"
      reasonLabel="Why (it is kept, and shown to others)"
      onConfirm={(reason) => void perform("stop", agentIds, { reason })}
      onClose={onClose}
    >
      <Whom agentIds={agentIds} />
      <p>Whatever runs is cancelled, with its tools. Mail and queues are kept: a stopped agent can be started again.</p>
    </Confirm>
  );
}

function DeleteDialog({ agentIds, onClose }: SteerProps) {
  return (
    <Confirm
      title={`Delete ${agentsInWords(agentIds)}?`}
      action="Delete for good"
      onConfirm={() => void perform("delete", agentIds, {})}
      onClose={onClose}
    >
      <Whom agentIds={agentIds} />
      <p>
        Whatever runs is cancelled. Conversations, mail, schedules and files go, and cannot be brought back. What was
        used still counts for the session.
      </p>
    </Confirm>
  );
}

function SleepDialog({ agentIds, onClose }: SteerProps) {
  const [form, setForm] = useState<SleepForm>({ amount: "10", unit: "minutes", until: "", events: "" });
  const [reason, setReason] = useState("");
  async function submit() {
    const params = sleepParams(form, Date.now() / 1000);
    return typeof params === "string" ? params : performAsked("sleep", agentIds, { ...params, reason });
  }
  const change = (fields: Partial<SleepForm>) => setForm({ ...form, ...fields });
  return (
    <Asking title={`Let ${agentsInWords(agentIds)} sleep`} action="Sleep" onSubmit={submit} onClose={onClose}>
      <Whom agentIds={agentIds} />
      <p className="quiet">Whichever comes first ends the sleep. Urgent mail ends it too.</p>
      <div className="line">
        <label className="field">
          For
          <input inputMode="decimal" value={form.amount} onChange={({ target }) => change({ amount: target.value })} />
        </label>
        <label className="field">
          Unit
          <select value={form.unit} onChange={({ target }) => change({ unit: target.value as SleepForm["unit"] })}>
            <option>seconds</option>
            <option>minutes</option>
            <option>hours</option>
            <option>days</option>
          </select>
        </label>
      </div>
      <label className="field">
        Until
        <input type="datetime-local" value={form.until} onChange={({ target }) => change({ until: target.value })} />
      </label>
      <label className="field">
        Or until one of these events
        <input
          placeholder="data_ready, mail_received"
          value={form.events}
          onChange={({ target }) => change({ events: target.value })}
        />
      </label>
      <Reason reason={reason} onChange={setReason} />
    </Asking>
  );
}

function PauseDialog({ action, agentIds, onClose }: SteerProps & { action: "pause" | "interrupt" }) {
  const [reason, setReason] = useState("");
  const submit = () => performAsked(action, agentIds, { reason });
  const word = verbOf(action);
  return (
    <Asking title={`${word} ${agentsInWords(agentIds)}`} action={word} onSubmit={submit} onClose={onClose}>
      <Whom agentIds={agentIds} />
      <p className="quiet">{ACTIONS[action].hint}</p>
      <Reason reason={reason} onChange={setReason} />
    </Asking>
  );
}

function WakeDialog({ agentIds, onClose }: SteerProps) {
  const [reason, setReason] = useState("");
  const submit = () => performAsked("wake", agentIds, { reason });
  return (
    <Asking title={`Wake ${agentsInWords(agentIds)}`} action="Wake" onSubmit={submit} onClose={onClose}>
      <Whom agentIds={agentIds} />
      <Reason reason={reason} onChange={setReason} label="Why (the agent is told)" />
    </Asking>
  );
}

function TaskDialog({ agentIds, onClose }: SteerProps) {
  const [prompt, setPrompt] = useState("");
  const [priority, setPriority] = useState<Priority>("normal");
  const taskKey = useIdOf({ prompt, priority });
  async function submit() {
    if (prompt.trim() === "") return "Say what is to be done.";
    return performAsked("task", agentIds, { prompt, priority, taskKey });
  }
  return (
    <Asking title={`Send a task to ${agentsInWords(agentIds)}`} action="Send" onSubmit={submit} onClose={onClose}>
      <Whom agentIds={agentIds} />
      <label className="field">
        What is to be done
        <textarea rows={5} value={prompt} onChange={({ target }) => setPrompt(target.value)} />
      </label>
      <PriorityField value={priority} onChange={setPriority} />
    </Asking>
  );
}

function Whom({ agentIds }: { agentIds: readonly string[] }) {
  if (agentIds.length < 2) return null;
  return <p className="dialog-text quiet">{firstOf(agentIds)}</p>;
}

interface ReasonProps {
  reason: string;
  onChange: (reason: string) => void;
  label?: string;
}

function Reason({ reason, onChange, label = "Why (it is kept, and shown to others)" }: ReasonProps) {
  return (
    <label className="field">
      {label}
      <input value={reason} onChange={({ target }) => onChange(target.value)} />
    </label>
  );
}
