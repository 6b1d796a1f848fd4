import { useState } from "react";
import type { Priority } from "../../client/client";
import { AgentChoice } from "../../parts/AgentChoice";
import { Dialog } from "../../parts/Dialog";
import { newId } from "../../parts/ids";
import { notify } from "../../state/actions";
import { usePage } from "../../state/page";
import { server } from "../../state/server";

const PRIORITIES: readonly Priority[] = ["urgent", "high", "normal", "low"];

/** A mail to an agent. If it cannot be sent, everything stays, and to try again sends it once. */
export function NewMail({ onClose }: { onClose: () => void }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [mail, setMail] = useState({ subject: "", body: "", priority: "normal" as Priority });
  const [mailId, setMailId] = useState(newId);
  const [isSending, setIsSending] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [agentId] = chosen;
  const change = (fields: Partial<typeof mail>) => {
    setMail({ ...mail, ...fields });
    setMailId(newId()); // another text is another mail
  };
  const send = async (to: string) => {
    setError(null);
    setIsSending(true);
    try {
      await server().call("mail.send", { sessionId, to, ...mail, mailId });
      notify(`Your mail is on its way to ${to}.`);
      onClose();
    } catch (problem) {
      setError(problem as Error);
      setIsSending(false);
    }
  };
  return (
    <Dialog title="New mail" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (agentId !== undefined) void send(agentId);
        }}
      >
        <AgentChoice
          label="To"
          chosen={chosen}
          onChange={(agents) => {
            setChosen(agents);
            setMailId(newId());
          }}
        />
        <label className="field">
          Subject
          <input value={mail.subject} required onChange={(event) => change({ subject: event.target.value })} />
        </label>
        <label className="field">
          Priority
          <select value={mail.priority} onChange={(event) => change({ priority: event.target.value as Priority })}>
            {PRIORITIES.map((priority) => (
              <option key={priority}>{priority}</option>
            ))}
          </select>
        </label>
        <label className="field">
          Text
          <textarea rows={6} value={mail.body} required onChange={(event) => change({ body: event.target.value })} />
        </label>
        {error && (
          <p className="inbox-failed" role="alert">
            Not sent. {error.message}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={agentId === undefined || isSending}>
            {error ? "Try again" : "Send"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
