import { useState } from "react";
import type { MissedRuns } from "../../client/client";
import { AgentField } from "../../parts/AgentField";
import { Asking } from "../../parts/Asking";
import { useIdOf } from "../../parts/ids";
import { readTime } from "../../parts/numbers";
import { attempt, notify } from "../../state/actions";

const MISSED: Record<MissedRuns, string> = {
  skip: "are skipped",
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
  const [wake, setWake] = useState(false);

  const scheduleId = useIdOf({ what, when, agent, words, cron, minutes, zone, missed, wake });

  async function create() {
    if (what === "prompt" && agent.trim() === "") return "Say which agent is given the prompt.";
    if (words.trim() === "") return what === "prompt" ? "Say what the agent should do." : "Give the event a name.";
    const times = when === "cron" ? { cron, zone } : interval(minutes);
    if (typeof times === "string") return times;
    const subject = what === "prompt" ? { agentId: agent.trim(), prompt: words, wake } : { event: words.trim() };
    await attempt("schedule.create", { ...subject, ...times, missed, scheduleId });
    notify("Created the schedule.");
    return undefined;
  }

  return (
    <Asking title="New schedule" action="Create" onSubmit={create} onClose={onClose}>
      <label className="field">
        What happens
        <select value={what} onChange={({ target }) => setWhat(target.value === "event" ? "event" : "prompt")}>
          <option value="prompt">an agent is given a prompt</option>
          <option value="event">an event is broadcast</option>
        </select>
      </label>
      {what === "prompt" && <AgentField label="Agent" value={agent} onChange={setAgent} />}
      {what === "prompt" ? (
        <label className="field">
          Prompt
          <textarea rows={3} value={words} onChange={({ target }) => setWords(target.value)} />
        </label>
      ) : (
        <label className="field">
          Name of the event
          <input value={words} onChange={({ target }) => setWords(target.value)} />
        </label>
      )}
      {what === "prompt" && (
        <label className="choice">
          <input type="checkbox" checked={wake} onChange={({ target }) => setWake(target.checked)} />
          Wakes the agent if it sleeps; else the prompt waits until it is awake
        </label>
      )}
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
            <input className="mono" value={cron} onChange={({ target }) => setCron(target.value)} />
          </label>
          <label className="field">
            Time zone
            <input value={zone} onChange={({ target }) => setZone(target.value)} />
          </label>
        </>
      ) : (
        <label className="field">
          Minutes
          <input inputMode="decimal" value={minutes} onChange={({ target }) => setMinutes(target.value)} />
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
    </Asking>
  );
}

/** Every so many minutes, or a sentence that says what is wrong with them. */
function interval(minutes: string): { intervalSeconds: number } | string {
  const least = { seconds: 1, words: "a second" };
  const seconds = readTime(minutes, { what: "The time between two", unit: "minutes", least });
  return typeof seconds === "string" ? seconds : { intervalSeconds: seconds };
}
