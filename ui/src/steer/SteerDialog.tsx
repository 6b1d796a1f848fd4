import { type FormEvent, type ReactNode, useState } from "react";
import type { Priority } from "../client/client";
import { Dialog } from "../parts/Dialog";
import { LifecycleQuestion } from "../parts/Lifecycle";
import { perform } from "./bulk";
import type { Action } from "./lifecycle";
import { firstOf } from "./text";

interface SteerProps {
  agentIds: readonly string[];
  onClose: () => void;
}

/** Asks what has to be known before something is done to agents, and does it. */
export function SteerDialog({ action, agentIds, onClose }: SteerProps & { action: Action }) {
  if (action === "task") return <TaskDialog agentIds={agentIds} onClose={onClose} />;
  const onAnswer = (params: object) => void perform(action, agentIds, params);
  return <LifecycleQuestion who={firstOf(agentIds)} action={action} onAnswer={onAnswer} onClose={onClose} />;
}

function TaskDialog({ agentIds, onClose }: SteerProps) {
  const [prompt, setPrompt] = useState("");
  const [priority, setPriority] = useState<Priority>("normal");
  const [problem, setProblem] = useState("");
  function submit() {
    if (prompt.trim() === "") setProblem("Say what is to be done.");
    else {
      onClose();
      void perform("task", agentIds, { prompt, priority });
    }
  }
  return (
    <Asking
      title={`Send a task to ${firstOf(agentIds)}`}
      action="Send"
      problem={problem}
      onSubmit={submit}
      onClose={onClose}
    >
      <label className="field">
        What is to be done
        <textarea rows={5} value={prompt} onChange={({ target }) => setPrompt(target.value)} />
      </label>
      <label className="field">
        Priority
        <select value={priority} onChange={({ target }) => setPriority(target.value as Priority)}>
          <option>urgent</option>
          <option>high</option>
          <option>normal</option>
          <option>low</option>
        </select>
      </label>
    </Asking>
  );
}

interface AskingProps {
  title: string;
  action: string;
  problem?: string;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A form over the page, with the word of its button and what is wrong with what was filled in. */
export function Asking({ title, action, problem = "", onSubmit, onClose, children }: AskingProps) {
  function submit(event: FormEvent) {
    event.preventDefault();
    onSubmit();
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form method="dialog" noValidate onSubmit={submit}>
        {children}
        <p className="steer-problem" role="alert">
          {problem}
        </p>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
