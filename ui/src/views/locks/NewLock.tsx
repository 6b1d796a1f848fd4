import { type FormEvent, useState } from "react";
import { Dialog } from "../../parts/Dialog";
import { act, notify } from "../../state/actions";

/** A form to hold a lock as a person, in one line with the agents. */
export function NewLock({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [minutes, setMinutes] = useState("10");
  const [isWaiting, setIsWaiting] = useState(false);
  async function take(submitted: FormEvent) {
    submitted.preventDefault();
    setIsWaiting(true);
    const lock = await act("lock.acquire", { name, ttlSeconds: Number(minutes) * 60, waitSeconds: 30 });
    setIsWaiting(false);
    if (lock === undefined) return;
    notify(`You have the lock ${name} with token ${lock.token}. Release it when you are done.`);
    onClose();
  }
  return (
    <Dialog title="Take a lock" onClose={onClose}>
      <form onSubmit={(submitted) => void take(submitted)}>
        <label className="field">
          Name
          <input value={name} required onChange={({ target }) => setName(target.value)} />
        </label>
        <label className="field">
          For how many minutes at most
          <input
            type="number"
            min="0.1"
            step="any"
            value={minutes}
            required
            onChange={({ target }) => setMinutes(target.value)}
          />
        </label>
        <p className="quiet" role="status">
          {isWaiting ? "Others are before you; waiting for up to 30 s…" : "If others hold it, you wait for up to 30 s."}
        </p>
        <div className="dialog-actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={isWaiting}>
            Take it
          </button>
        </div>
      </form>
    </Dialog>
  );
}
