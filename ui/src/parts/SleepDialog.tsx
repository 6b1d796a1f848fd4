import { type FormEvent, useState } from "react";
import { Dialog } from "./Dialog";
import { NO_SLEEP, type SleepForm, type SleepPlan, sleepPlan, UNITS } from "./sleepPlan";

interface SleepDialogProps {
  /** Who goes to sleep, for the title. */
  who: string;
  onSleep: (plan: SleepPlan) => void;
  onClose: () => void;
}

/** Asks for how long, until when and until which events; whichever comes first ends the sleep. */
export function SleepDialog({ who, onSleep, onClose }: SleepDialogProps) {
  const [form, setForm] = useState<SleepForm>(NO_SLEEP);
  const [wrong, setWrong] = useState<string | null>(null);
  const change = (fields: Partial<SleepForm>) => {
    setForm({ ...form, ...fields });
    setWrong(null);
  };
  function submit(event: FormEvent) {
    event.preventDefault();
    const plan = sleepPlan(form, Date.now() / 1000);
    if (typeof plan === "string") return setWrong(plan);
    onClose();
    onSleep(plan);
  }
  return (
    <Dialog title={`Let ${who} sleep`} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <p className="quiet">Whichever comes first wakes it. Mail waits until then.</p>
        <div className="line">
          <label className="field">
            For
            <input
              inputMode="decimal"
              placeholder="30"
              value={form.amount}
              onChange={(event) => change({ amount: event.target.value })}
            />
          </label>
          <label className="field">
            Unit
            <select value={form.unit} onChange={(event) => change({ unit: event.target.value as SleepForm["unit"] })}>
              {Object.keys(UNITS).map((unit) => (
                <option key={unit}>{unit}</option>
              ))}
            </select>
          </label>
        </div>
        <label className="field">
          Until
          <input type="datetime-local" value={form.until} onChange={(event) => change({ until: event.target.value })} />
        </label>
        <label className="field">
          Or until one of these events
          <input
            placeholder="alert, hourly_check"
            value={form.events}
            onChange={(event) => change({ events: event.target.value })}
          />
        </label>
        <label className="field">
          Reason
          <input value={form.reason} onChange={(event) => change({ reason: event.target.value })} />
        </label>
        <p className="form-wrong" role="alert">
          {wrong}
        </p>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Sleep
          </button>
        </div>
      </form>
    </Dialog>
  );
}
