import { useState } from "react";
import { Asking } from "../../parts/Asking";
import { useActing } from "../../parts/acting";
import { bytes, count } from "../../parts/format";
import { Loaded } from "../../parts/Messages";
import { attempt, notify } from "../../state/actions";
import { useAnswer } from "../../state/answers";
import { usePage } from "../../state/page";

/** How much room the session takes, and how to make it less. */
export function Storage() {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const answer = useAnswer("session.storage", { sessionId }, ({ name }) => name === "session.pruned");
  const [isPruning, setIsPruning] = useState(false);
  const acting = useActing("Erase what ended long ago");
  return (
    <section aria-labelledby="storage">
      <header className="view-head">
        <h2 id="storage">Storage</h2>
        <span className="space" />
        <button type="button" {...acting} onClick={() => setIsPruning(true)}>
          Prune…
        </button>
      </header>
      <Loaded answer={answer}>
        {({ parts, sizeBytes, databaseBytes, freeBytes, firstSeq, lastSeq }) => (
          <>
            <p className="quiet">
              This session takes {bytes(sizeBytes)}, and the database of all sessions {bytes(databaseBytes)}, of which{" "}
              {bytes(freeBytes)} hold nothing. The log has entries {count(firstSeq)} to {count(lastSeq)}.
            </p>
            <table className="storage">
              <thead>
                <tr>
                  <th scope="col">What</th>
                  <th scope="col">Rows</th>
                  <th scope="col">Size</th>
                </tr>
              </thead>
              <tbody>
                {parts.map((part) => (
                  <tr key={part.name}>
                    <th scope="row">{part.name}</th>
                    <td>{count(part.rows)}</td>
                    <td>{bytes(part.sizeBytes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </Loaded>
      {isPruning && <Pruning onDone={answer.again} onClose={() => setIsPruning(false)} />}
    </section>
  );
}

/** Asks how old what goes has to be. What would go is told first. */
function Pruning({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const [olderThan, setOlderThan] = useState("30d");
  const [told, setTold] = useState<string | null>(null);
  const submit = async () => {
    const { erased, dryRun } = await attempt("session.prune", { olderThan, dryRun: told === null });
    const words = Object.entries(erased).filter(([, number]) => number > 0);
    const what = words.map(([name, number]) => `${count(number)} ${name}`).join(", ") || "nothing";
    if (dryRun) {
      setTold(what);
      return `This would go: ${what}. Press again to erase it.`;
    }
    notify(`Erased: ${what}.`);
    onDone();
    return undefined;
  };
  const change = (age: string) => {
    setOlderThan(age);
    setTold(null);
  };
  return (
    <Asking
      title="Prune this session"
      action={told === null ? "Look" : "Erase for good"}
      onSubmit={submit}
      onClose={onClose}
    >
      <p>
        The content of what has ended goes, and the log before that. Open work, dead letters, your mail until it is
        archived, and what was used stay.
      </p>
      <label className="field">
        Older than
        <input value={olderThan} placeholder="30d" onChange={({ target }) => change(target.value)} />
      </label>
    </Asking>
  );
}
