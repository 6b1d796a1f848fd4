import { useState } from "react";
import type { Priority } from "../../client/client";
import { AgentChoice } from "../../parts/AgentChoice";
import { Asking } from "../../parts/Asking";
import { useIdOf } from "../../parts/ids";
import { PriorityField } from "../../parts/PriorityField";
import { attempt, notify } from "../../state/actions";

/** A mail to an agent. If it cannot be sent, everything stays, and to try again sends it once. */
export function NewMail({ onClose }: { onClose: () => void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [mail, setMail] = useState({ subject: "", body: "", priority: "normal" as Priority });
  const mailId = useIdOf({ to: [...chosen], ...mail });
  const change = (fields: Partial<typeof mail>) => setMail({ ...mail, ...fields });
  const send = async () => {
    const [to] = chosen;
    if (to === undefined) return "Choose whom the mail is for.";
    if (mail.subject.trim() === "") return "Give the mail a subject.";
    if (mail.body.trim() === "") return "Write what the mail is to say.";
    await attempt("mail.send", { to, ...mail, mailId });
    notify(`Your mail is on its way to ${to}.`);
    return undefined;
  };
  return (
    <Asking title="New mail" action="Send" onSubmit={send} onClose={onClose}>
      <AgentChoice label="To" chosen={chosen} onChange={setChosen} />
      <label className="field">
        Subject
        <input value={mail.subject} onChange={(event) => change({ subject: event.target.value })} />
      </label>
      <PriorityField value={mail.priority} onChange={(priority) => change({ priority })} />
      <label className="field">
        Text
        <textarea rows={6} value={mail.body} onChange={(event) => change({ body: event.target.value })} />
      </label>
    </Asking>
  );
}
