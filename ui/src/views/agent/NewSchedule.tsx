import { type FormEvent, useState } from "react";
import type { MissedRuns } from "../../client/client";
import { Dialog } from "../../parts/Dialog";
import { act } from "../../state/actions";
import { MISSED, NO_SCHEDULE, type ScheduleForm, scheduleParams } from "./scheduleForm";

/** Has a prompt given to the agent by the clock. */
export function NewSchedule({ agentId, who, onClose }: { agentId: string; who: string; onClose: () => void }) {
  const [form, setForm] = useState<ScheduleForm>(NO_SCHEDULE);
  const [wrong, setWrong] = useState<string | null>(null);
  const change = (fields: Partial<ScheduleForm>) => {
    setForm({ ...form, ...fields });
    setWrong(null);
  };
  async function create(event: FormEvent) {
    event.preventDefault();
    const params = scheduleParams(form);
    if (typeof params === "string") return setWrong(params);
    if (await act("schedule.create", { agentId, ...params })) onClose();
  }
  return (
    <Dialog title={`A schedule for ${who}`} onClose={onClose}>
      <form onSubmit={create} noValidate>
        <label className="field">
          What it is to do each time
          <textarea rows={3} value={form.prompt} onChange={(event) => change({ prompt: event.target.value })} />
        </label>
        <label className="field">
          When
          <select value={form.by} onChange={(event) => change({ by: event.target.value as ScheduleForm["by"] })}>
            <option value="cron">at times of day and dates (cron)</option>
            <option value="interval">again and again after a time</option>
          </select>
        </label>
        {form.by === "cron" ? (
          <div className="agent-fields">
            <label className="field">
              Minute, hour, day, month, weekday
              <input
                className="mono"
                placeholder="0 9 * * 1-5"
                value={form.cron}
                onChange={(event) => change({ cron: event.target.value })}
              />
            </label>
            <label className="field">
              Time zone
              <input value={form.zone} onChange={(event) => change({ zone: event.target.value })} />
            </label>
          </div>
        ) : (
          <label className="field">
            Seconds between two runs
            <input
              inputMode="decimal"
              placeholder="3600"
              value={form.seconds}
              onChange={(event) => change({ seconds: event.target.value })}
            />
          </label>
        )}
        <label className="field">
          Of the times that passed while nothing could run
          <select value={form.missed} onChange={(event) => change({ missed: event.target.value as MissedRuns })}>
            {Object.entries(MISSED).map(([missed, words]) => (
              <option key={missed} value={missed}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <p className="form-wrong" role="alert">
          {wrong}
        </p>
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
