import { useState } from "react";
import type { LimitScope, LimitSource, LimitState } from "../../client/client";
import { Asking, type Submitted } from "../../parts/Asking";
import { attempt, notify } from "../../state/actions";
import { aboutLimit, canBeEndless, limitText, readLimit, unitOf } from "./names";

interface ChangeLimitProps {
  limit: LimitState;
  scope: LimitScope;
  agentId: string;
  onDone: () => void;
  onClose: () => void;
}

const SOURCES: Readonly<Record<LimitSource, string>> = {
  agent: "as the agent states it",
  session: "as the session states it",
  server: "as the server states it",
  setting: "as the server was started with",
  default: "by default",
};
const TAKE_BACK = "take back";
const UNITS = { seconds: "in seconds", bytes: "in bytes", money: "in US dollars", tokens: "", number: "" };

/** Asks for another value of a limit, or takes back what was stated here. */
export function ChangeLimit({ limit, scope, agentId, onDone, onClose }: ChangeLimitProps) {
  const { name, value, source, reached } = limit;
  const { title, outcome } = aboutLimit(name);
  const [text, setText] = useState(String(value));
  const read = readLimit(name, text);
  const whose = scope === "agent" ? agentId : `the ${scope}`;

  async function set(next: number | null) {
    const who = scope === "agent" ? { agentId } : { scope };
    await attempt("limits.set", { limits: { [name]: next }, ...who });
    notify(next === null ? `Reset ${title} of ${whose}.` : `${title} of ${whose}: ${limitText(name, next)}.`);
    onDone();
  }
  async function submit({ submitter }: Submitted) {
    if (submitter === TAKE_BACK) await set(null);
    else if (typeof read === "string") return read;
    else await set(read);
    return undefined;
  }
  return (
    <Asking title={`${title} of ${whose}`} action="Change" onSubmit={submit} onClose={onClose}>
      <p className="quiet">
        <code>{name}</code>. {outcome} Now {limitText(name, value)}, {SOURCES[source]}
        {reached > 0 && `; reached ${reached} × since the session was opened`}. A change takes effect at once and is
        kept.
      </p>
      <label className="field">
        {["Value", UNITS[unitOf(name)], canBeEndless(name) ? "(0 for no limit)" : ""].filter(Boolean).join(" ")}
        <input inputMode="decimal" value={text} onChange={({ target }) => setText(target.value)} />
      </label>
      <p className="quiet limits-read">{typeof read === "number" ? limitText(name, read) : " "}</p>
      {source === scope && (
        <p>
          <button type="submit" value={TAKE_BACK}>
            Reset it
          </button>{" "}
          <span className="quiet">so that what is stated elsewhere holds again.</span>
        </p>
      )}
    </Asking>
  );
}
