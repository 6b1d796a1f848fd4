import type { AgentDefinition, Effects, Params } from "../client/client";
import { changesOf, type OwnForm } from "./definition";

/** What the user fills in to fork a session. */
export interface ForkForm {
  /** The entry of the log. */
  readonly at: string;
  readonly effects: Effects;
  /** The id of the new session; with several, how their ids begin. */
  readonly name: string;
  readonly runs: string;
  /** The agents that may be defined otherwise, by id; null until something of one was changed. */
  readonly agents: ReadonlyMap<string, Redefined | null>;
}

export interface Redefined {
  readonly definition: AgentDefinition;
  readonly form: OwnForm;
}

const MOST_RUNS = 100;

/** The effects that can be chosen, with what each means. */
export const EFFECTS: readonly (readonly [Effects, name: string, meaning: string])[] = [
  [
    "ask",
    "Ask",
    "A person is asked before each call, except of tools that work inside the session, such as send_mail.",
  ],
  [
    "recorded",
    "Recorded",
    "A call that this session has made too brings its recorded result, and nothing is called. One that may be repeated is made; for any other a person is asked.",
  ],
  ["live", "Live", "Calls are made, as in any session. What this session did later may be done a second time."],
];

/** The number of an entry of the log; null if it is none. */
export function entryOf(text: string): number | null {
  return /^\d{1,15}$/.test(text.trim()) && Number(text) > 0 ? Number(text) : null;
}

/** What is asked of the server, or a sentence that says what is wrong with the form. */
export function forkParams(form: ForkForm): Omit<Params<"session.fork">, "sessionId"> | string {
  const at = entryOf(form.at);
  if (at === null) return "Write the number of an entry of the log, 1 or more.";
  const runs = entryOf(form.runs);
  if (runs === null || runs > MOST_RUNS) return `There can be 1 to ${MOST_RUNS} forks at once.`;
  const set: Record<string, unknown> = {};
  for (const [agentId, redefined] of form.agents) {
    if (redefined === null) continue;
    const changes = changesOf(redefined.form, redefined.definition);
    for (const [field, value] of Object.entries(changes)) set[`${agentId}.${field}`] = value;
  }
  const name = form.name.trim();
  return { at, effects: form.effects, set, runs, ...(name === "" ? {} : { newSessionId: name }) };
}
