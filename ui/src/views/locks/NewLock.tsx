import { useState } from "react";
import { Asking } from "../../parts/Asking";
import { readTime } from "../../parts/numbers";
import { Until } from "../../parts/Times";
import { USER } from "../../projection/coordination";
import { attempt, notify } from "../../state/actions";
import { useWorld } from "../../state/page";

const LONGEST = { seconds: 7 * 86_400, words: "7 days" };

/** A form to hold a lock as a person, in one line with the agents; or to hold for longer what one has. */
export function NewLock({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [minutes, setMinutes] = useState("10");
  const held = useWorld((world) => world.locks.get(name.trim()));
  const own = held?.agentId === null && held.holder === USER ? held : undefined;
  async function take() {
    if (name.trim() === "") return "Give the lock a name: that of the thing you want for yourself.";
    const ttlSeconds = readTime(minutes, { what: "The time", unit: "minutes", most: LONGEST });
    if (typeof ttlSeconds === "string") return ttlSeconds;
    if (own === undefined) {
      const lock = await attempt("lock.acquire", { name: name.trim(), ttlSeconds, waitSeconds: 30 });
      notify(`You have the lock ${lock.name} with token ${lock.token}. Release it when you are done.`);
    } else {
      await attempt("lock.renew", { name: own.name, token: own.token, ttlSeconds });
      notify(`You have the lock ${own.name} for longer.`);
    }
    return undefined;
  }
  return (
    <Asking title="Take a lock" action={own === undefined ? "Take it" : "Renew"} onSubmit={take} onClose={onClose}>
      <label className="field">
        Name
        <input value={name} onChange={({ target }) => setName(target.value)} />
      </label>
      <label className="field">
        For how many minutes at most
        <input inputMode="decimal" value={minutes} onChange={({ target }) => setMinutes(target.value)} />
      </label>
      <p className="quiet" role="status">
        {own !== undefined && (
          <>
            You have it already; it runs out <Until at={own.expiresAt} />. Renew lets it last for as long from now on.
          </>
        )}
        {own === undefined && held !== undefined && `${held.holder} has it: you wait for it for up to 30 s.`}
        {own === undefined && held === undefined && "If others hold it, you wait for up to 30 s."}
      </p>
    </Asking>
  );
}
