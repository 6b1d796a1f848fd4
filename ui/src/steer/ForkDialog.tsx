import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { ForkReport } from "../client/client";
import { usePages } from "../history/history";
import { pageOf } from "../history/pages";
import { telling } from "../history/telling";
import { AgentChoice } from "../parts/AgentChoice";
import { Asking } from "../parts/Asking";
import { Dialog } from "../parts/Dialog";
import { count } from "../parts/format";
import { Loaded } from "../parts/Messages";
import { addressOf } from "../shell/addresses";
import { notify } from "../state/actions";
import { useAnswer } from "../state/answers";
import { refreshSessions } from "../state/following";
import { useName } from "../state/names";
import { shownWorld, usePage } from "../state/page";
import { server } from "../state/server";
import { formOf } from "./definition";
import { EFFECTS, entryOf, type ForkForm, forkParams, type Redefined } from "./fork";
import { OwnDefinition } from "./OwnDefinition";

/** How long the number is left alone before the server is asked about it. */
const TYPED_MS = 250;

interface ForkDialogProps {
  /** The entry of the log; that of the moment which is shown, unless it is said. */
  at?: number;
  onClose: () => void;
}

/** Lets the session continue from an entry of its log in another one. */
export function ForkDialog({ at, onClose }: ForkDialogProps) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const [form, setForm] = useState<ForkForm>(() => ({
    at: String(at ?? shownWorld().seq),
    effects: "ask",
    name: "",
    runs: "1",
    agents: new Map(),
  }));
  const made = useRef<ForkReport | null>(null);
  const [report, setReport] = useState<ForkReport | null>(null);
  const isThere = useRef(false);
  useEffect(() => {
    isThere.current = true;
    return () => {
      isThere.current = false; // it may be closed while the fork is made
    };
  }, []);
  const change = (fields: Partial<ForkForm>) => setForm((before) => ({ ...before, ...fields }));

  async function fork() {
    const params = forkParams(form);
    if (typeof params === "string") return params;
    const forked = await server().call("session.fork", { sessionId, ...params });
    made.current = forked;
    void refreshSessions();
    if (!isThere.current) notify(`Forked ${sessionId} as ${forked.sessionIds.join(", ")}.`);
    return undefined;
  }
  if (report !== null) return <Forked report={report} onClose={onClose} />;
  return (
    <Asking
      title="Fork from here"
      action="Fork"
      doing="The session is played up to there. That may take a while if its log is long."
      onSubmit={fork}
      onDone={() => setReport(made.current)}
      onClose={onClose}
      wide
      isHarmless
    >
      <p className="quiet">
        Makes another session that is as this one was after an entry of its log, and continues from there. Up to there
        nothing is asked of a model or done by a tool again. This session stays as it is.
      </p>
      <EntryField text={form.at} onChange={(text) => change({ at: text })} />
      <Agents agents={form.agents} onChange={(agents) => change({ agents })} />
      <fieldset className="fork-effects">
        <legend>Calls with effects outside</legend>
        {EFFECTS.map(([effects, name, meaning]) => (
          <label key={effects} className="choice">
            <input
              type="radio"
              name="effects"
              checked={form.effects === effects}
              onChange={() => change({ effects })}
            />
            <span>
              <strong>{name}</strong> <span className="quiet">{meaning}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div className="new-agent-two">
        <label className="field">
          Id of the new session
          <input
            value={form.name}
            placeholder="chosen by the server"
            spellCheck={false}
            autoComplete="off"
            onChange={({ target }) => change({ name: target.value })}
          />
        </label>
        <label className="field">
          How many forks
          <input inputMode="numeric" value={form.runs} onChange={({ target }) => change({ runs: target.value })} />
        </label>
      </div>
    </Asking>
  );
}

/** The number of the entry, what it says, and the nearest that work if it does not. */
function EntryField({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const near = useSettled(entryOf(text));
  const found = useAnswer("session.forkPoints", near === null ? null : { sessionId, near });
  const points = found.data?.points ?? [];
  const isPossible = near !== null && points.includes(near);
  const told = useTold(near);
  return (
    <div className="fork-entry">
      <label className="field">
        After entry
        <input data-first inputMode="numeric" value={text} onChange={({ target }) => onChange(target.value)} />
      </label>
      <div role="status">
        {isPossible && told !== null && <p className="quiet ellipsis">{told}</p>}
        {found.error !== null && <p className="fork-problem">{found.error.message}</p>}
        {found.data !== undefined && !isPossible && (
          <p className="fork-nearest">
            {points.length === 0
              ? "The session cannot be forked near this entry."
              : "This entry is in the middle of a step, or beyond the log. The nearest that work:"}
            {points.map((point) => (
              <button key={point} type="button" onClick={() => onChange(String(point))}>
                {point}
              </button>
            ))}
          </p>
        )}
      </div>
    </div>
  );
}

/** The number that was typed, once it has not changed for a moment. */
function useSettled(value: number | null): number | null {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPED_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** What an entry of the log says; null until it is known. */
function useTold(seq: number | null): string | null {
  const pages = usePages();
  const isThere = seq !== null && seq >= pages.firstSeq && seq <= pages.lastSeq;
  useEffect(() => {
    if (isThere && seq !== null) void pages.page(pageOf(seq)).catch(() => {}); // it can be forked without
  }, [pages, seq, isThere]);
  const note = isThere && seq !== null ? pages.note(seq) : undefined;
  return note === undefined ? null : telling(note);
}

type Redefining = ForkForm["agents"];

/** The agents that are to be defined otherwise from there on. */
function Agents({ agents, onChange }: { agents: Redefining; onChange: (agents: Redefining) => void }) {
  return (
    <details className="fork-agents">
      <summary>
        Change what agents are{" "}
        <span className="quiet">
          {agents.size === 0 ? "(all stay as they are)" : `(${[...agents.keys()].join(", ")})`}
        </span>
      </summary>
      <AgentChoice
        label="Agents"
        chosen={new Set(agents.keys())}
        isMany
        onChange={(chosen) => onChange(new Map([...chosen].map((agentId) => [agentId, agents.get(agentId) ?? null])))}
      />
      {[...agents].map(([agentId, redefined]) => (
        <AgentChanges
          key={agentId}
          agentId={agentId}
          redefined={redefined}
          onChange={(next) => onChange(new Map(agents).set(agentId, next))}
        />
      ))}
    </details>
  );
}

interface AgentChangesProps {
  agentId: string;
  redefined: Redefined | null;
  onChange: (redefined: Redefined) => void;
}

/** The definition of an agent as it is now, to be changed for the fork. */
function AgentChanges({ agentId, redefined, onChange }: AgentChangesProps) {
  const sessionId = usePage((page) => page.sessionId) ?? "";
  const name = useName(agentId);
  const details = useAnswer("agent.get", { sessionId, agentId });
  return (
    <fieldset className="fork-agent">
      <legend>{name}</legend>
      <Loaded answer={details}>
        {(data) => {
          const { definition, form } = redefined ?? { definition: data.definition, form: formOf(data.definition) };
          return <OwnDefinition form={form} onChange={(next) => onChange({ definition, form: next })} />;
        }}
      </Loaded>
    </fieldset>
  );
}

/** The sessions that came of it, and the ways to them. */
function Forked({ report, onClose }: { report: ForkReport; onClose: () => void }) {
  const { sessionId, at, sessionIds, recordedCalls } = report;
  return (
    <Dialog title="Forked" onClose={onClose}>
      <p role="status">
        {sessionIds.length === 1 ? "A session goes" : `${count(sessionIds.length)} sessions go`} on from entry {at} of{" "}
        {sessionId}.{recordedCalls > 0 && ` The results of ${count(recordedCalls)} later calls are at hand.`}
      </p>
      <ul className="fork-made">
        {sessionIds.map((made) => (
          <li key={made}>
            <strong>{made}</strong>
            <Link href={addressOf(made)} onClick={onClose}>
              Open
            </Link>
            <Link href={addressOf(sessionId, "compare", made)} onClick={onClose}>
              Compare
            </Link>
          </li>
        ))}
      </ul>
      <div className="dialog-actions">
        <button type="button" className="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
