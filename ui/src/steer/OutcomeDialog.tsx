import { Dialog } from "../parts/Dialog";
import { count } from "../parts/format";
import { type Outcome, perform } from "./bulk";
import { ACTIONS, toldOf, verbOf } from "./lifecycle";

const SHOWN = 200;

/** How something ended that was done to several agents, when not all of it worked. */
export function OutcomeDialog({ outcome, onClose }: { outcome: Outcome; onClose: () => void }) {
  const { sessionId, action, params, worked, failed, left } = outcome;
  function again() {
    onClose();
    void perform(
      action,
      failed.map(({ agentId }) => agentId),
      params,
      sessionId,
    );
  }
  return (
    <Dialog title={verbOf(action)} onClose={onClose} wide>
      <p>
        {toldOf(ACTIONS[action].done, `${count(worked)} ${worked === 1 ? "agent" : "agents"}`)}.
        {failed.length > 0 && ` With ${count(failed.length)} it did not work:`}
        {left > 0 && ` ${count(left)} were left as they were, since you ended it.`}
      </p>
      {failed.length > 0 && (
        <ul className="steer-failed">
          {failed.slice(0, SHOWN).map(({ agentId, why }) => (
            <li key={agentId}>
              <strong>{agentId}</strong> {why}
            </li>
          ))}
          {failed.length > SHOWN && <li className="quiet">and {count(failed.length - SHOWN)} more</li>}
        </ul>
      )}
      <div className="dialog-actions">
        {failed.length > 0 && (
          <button type="button" onClick={again}>
            Try these again
          </button>
        )}
        <button type="button" className="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
