import { type FormEvent, useState } from "react";
import type { MissedRuns } from "../../client/client";
import { AgentField } from "../../parts/AgentField";
import { Dialog } from "../../parts/Dialog";
import { useIdOf } from "../../parts/ids";
import { act, notify } from "../../state/actions";

const MISSED: Record<MissedRuns, string> = {
  skip: "are passed over",
  once: "fire once",
  all: "fire all, one after the other",
};
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** A form for a schedule. What is wrong with it the server says, in a sentence. */
export function NewSchedule({ onClose, agentId = "" }: { onClose: () => void; agentId?: string }) {
  const [what, setWhat] = useState<"prompt" | "event">("prompt");
  const [when, setWhen] = useState<"cron" | "interval">("cron");
  const [agent, setAgent] = useState(agentId);
  const [words, setWords] = useState("");
  const [cron, setCron] = useState("0 9 * * 1-5");
  const [minutes, setMinutes] = useState("30");
  const [zone, setZone] = useState(OWN_ZONE);
  const [missed, setMissed] = useState<MissedRuns>("once");
  const schedule = {
    ...(what === "prompt" ? { agentId: agent, prompt: words } : { event: words }),
    ...(when === "cron" ? { cron, zone } : { intervalSeconds: Number(minutes) * 60 }),
    missed,
  };
  const scheduleId = useIdOf(schedule);

  async function create(submitted: FormEvent) {
    submitted.preventDefault();
    const made = await act("schedule.create", { ...schedule, scheduleId });
    if (made === undefined) return;
    notify("The schedule is made.");
    onClose();
  }

  return (
    <Dialog title="New schedule" onClose={onClose}>
      <form onSubmit={(event) => void create(event)}>
        <label className="field">
          What happens
          <select value={what} onChange={({ target }) => setWhat(target.value === "event" ? "event" : "prompt")}>
            <option value="prompt">an agent is given a prompt</option>
            <option value="event">an event is broadcast</option>
          </select>
        </label>
        {what === "prompt" && <AgentField label="Agent" value={agent} onChange={setAgent} required />}
        <label className="field">
          {what === "prompt" ? "Prompt" : "Name of the event"}
          <input value={words} required onChange={({ target }) => setWords(target.value)} />
        </label>
        <label className="field">
          When
          <select value={when} onChange={({ target }) => setWhen(target.value === "cron" ? "cron" : "interval")}>
            <option value="cron">by a cron line</option>
            <option value="interval">every so many minutes</option>
          </select>
        </label>
        {when === "cron" ? (
          <>
            <label className="field">
              Cron: minute, hour, day, month, day of the week
              <input className="mono" value={cron} required onChange={({ target }) => setCron(target.value)} />
            </label>
            <label className="field">
              Time zone
              <input value={zone} required onChange={({ target }) => setZone(target.value)} />
            </label>
          </>
        ) : (
          <label className="field">
            Minutes
            <input
              type="number"
              min="0.1"
              step="any"
              value={minutes}
              required
              onChange={({ target }) => setMinutes(target.value)}
            />
          </label>
        )}
        <label className="field">
          Due times that passed while nothing could fire
          <select value={missed} onChange={({ target }) => setMissed(target.value as MissedRuns)}>
            {Object.entries(MISSED).map(([policy, told]) => (
              <option key={policy} value={policy}>
                {told}
              </option>
            ))}
          </select>
        </label>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}
