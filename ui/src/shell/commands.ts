import type { SessionSummary } from "../client/client";
import { words as inWords } from "../parts/format";
import type { IconName } from "../parts/Icon";
import { lookOf } from "../parts/looks";
import type { Agent, Room } from "../projection/world";
import { ACTION_NAMES, ACTIONS, type Action, fits, verbOf } from "../steer/lifecycle";
import { VIEWS } from "./views";

/** What choosing something in the palette does. */
export type Deed =
  | { readonly kind: "go"; readonly parts: readonly string[] }
  | { readonly kind: "session"; readonly sessionId: string }
  | { readonly kind: "steer"; readonly action: Action; readonly agentId: string }
  | { readonly kind: "open"; readonly dialog: "new-agent" | "new-group" | "broadcast" | "fork" | "help" }
  | { readonly kind: "theme"; readonly theme: "system" | "light" | "dark" };

export interface Entry {
  readonly id: string;
  readonly group: Group;
  readonly title: string;
  readonly detail: string;
  readonly icon: IconName;
  readonly deed: Deed;
}

export type Group = "Places" | "Do" | "Agents" | "Act on an agent" | "Rooms" | "Sessions";
const GROUPS: readonly Group[] = ["Places", "Do", "Agents", "Act on an agent", "Rooms", "Sessions"];

export interface Sources {
  readonly agents: ReadonlyMap<string, Agent>;
  readonly rooms: ReadonlyMap<string, Room>;
  readonly sessions: readonly SessionSummary[];
  /** Whether the session can be changed: in the past only looking is possible. */
  readonly canAct: boolean;
}

const MOST_OF_GROUP = 8;
/** Of how many agents the actions are offered, beside those whose action was asked for. */
const MOST_STEERED = 2;

const PLACES: readonly Entry[] = VIEWS.map(({ path, title, icon, key }) => ({
  id: `place ${path}`,
  group: "Places",
  title,
  detail: `g ${key}`,
  icon,
  deed: { kind: "go", parts: [path] },
}));

const LOOKING: readonly Entry[] = [
  { id: "theme light", title: "Light colours", icon: "sun", deed: { kind: "theme", theme: "light" } },
  { id: "theme dark", title: "Dark colours", icon: "moon", deed: { kind: "theme", theme: "dark" } },
  { id: "theme system", title: "Colours of the system", icon: "system", deed: { kind: "theme", theme: "system" } },
  { id: "help", title: "Help: keyboard shortcuts", icon: "more", deed: { kind: "open", dialog: "help" } },
].map((entry) => ({ ...entry, group: "Do", detail: entry.id === "help" ? "?" : "" }) as Entry);

/** What leaves the session as it is, and so can be done in the past too. */
const FORKING: Entry = {
  id: "fork",
  group: "Do",
  title: "Fork from here",
  detail: "another session that continues from the moment that is shown",
  icon: "fork",
  deed: { kind: "open", dialog: "fork" },
};

const MAKING: readonly Entry[] = [
  { id: "new agent", title: "New agent", detail: "n", icon: "plus", deed: { kind: "open", dialog: "new-agent" } },
  {
    id: "new group",
    title: "New group",
    detail: "",
    icon: "chats",
    deed: { kind: "open", dialog: "new-group" },
  },
  {
    id: "broadcast",
    title: "Broadcast an event",
    detail: "",
    icon: "events",
    deed: { kind: "open", dialog: "broadcast" },
  },
].map((entry) => ({ ...entry, group: "Do" }) as Entry);

/** What fits the words of the query, the best first in each group, and no more than can be looked through. */
export function findEntries(query: string, sources: Sources): Entry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const fixed = [...PLACES, ...(sources.canAct ? MAKING : []), FORKING, ...LOOKING];
  const rooms = [...sources.rooms.values()].map(roomEntry);
  const sessions = sources.sessions.map(sessionEntry);
  const found = [...fixed, ...rooms, ...sessions].flatMap((entry) => {
    const score = scoreOf(words, `${entry.title} ${entry.group === "Sessions" ? entry.detail : ""}`.toLowerCase());
    return score === 0 ? [] : [{ entry, score }];
  });
  const agents = bestAgents(words, sources.agents);
  for (const { agent, score } of agents) found.push({ entry: agentEntry(agent), score });
  if (sources.canAct && words.length > 0) found.push(...steering(words, agents, sources.agents));
  return GROUPS.flatMap((group) =>
    found
      .filter(({ entry }) => entry.group === group)
      .sort((a, b) => b.score - a.score)
      .slice(0, group === "Places" ? VIEWS.length : MOST_OF_GROUP * (group === "Act on an agent" ? 2 : 1))
      .map(({ entry }) => entry),
  );
}

/** 0 if a word is missing; else the more, the nearer to the beginning of a word each stands. */
function scoreOf(words: readonly string[], text: string): number {
  let score = 1;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return 0;
    if (at === 0) score += text.length === word.length ? 4 : 3;
    else if (/[\s_.\-:@]/.test(text[at - 1] as string)) score += 2;
    else score += 1;
  }
  return score;
}

interface Scored {
  readonly agent: Agent;
  readonly score: number;
}

const texts = new WeakMap<Agent, string>();

function textOf(agent: Agent): string {
  let text = texts.get(agent);
  if (text === undefined) {
    text = (agent.name ? `${agent.name} ${agent.agentId}` : agent.agentId).toLowerCase();
    texts.set(agent, text);
  }
  return text;
}

/** The agents that fit best: one pass over all, in which only the best are kept. */
function bestAgents(words: readonly string[], agents: ReadonlyMap<string, Agent>): Scored[] {
  const best: Scored[] = [];
  for (const agent of agents.values()) {
    const score = scoreOf(words, textOf(agent));
    if (score === 0) continue;
    if (best.length === MOST_OF_GROUP && score <= (best.at(-1) as Scored).score) continue;
    const at = best.findIndex((other) => other.score < score);
    best.splice(at < 0 ? best.length : at, 0, { agent, score });
    if (best.length > MOST_OF_GROUP) best.pop();
  }
  return best;
}

/** "pause ali" pauses alice; "alice" alone offers all that can be done with her. */
function steering(words: readonly string[], found: readonly Scored[], agents: ReadonlyMap<string, Agent>) {
  const entries: { entry: Entry; score: number }[] = [];
  const known = new Set<string>();
  function offer(action: Action, { agent, score }: Scored) {
    const entry = steerEntry(action, agent);
    if (!fits(agent, action) || known.has(entry.id)) return;
    known.add(entry.id);
    entries.push({ entry, score });
  }
  for (const action of ACTION_NAMES) {
    const verb = verbOf(action).toLowerCase().split(" ");
    const rest = words.filter((word) => !verb.some((part) => word.length > 1 && part.startsWith(word)));
    if (rest.length === words.length) continue;
    for (const scored of bestAgents(rest, agents)) offer(action, { ...scored, score: scored.score + 10 });
  }
  for (const scored of found.slice(0, MOST_STEERED)) for (const action of ACTION_NAMES) offer(action, scored);
  return entries;
}

function steerEntry(action: Action, { agentId, name }: Agent): Entry {
  return {
    id: `steer ${action} ${agentId}`,
    group: "Act on an agent",
    title: `${verbOf(action)}${action === "task" ? " to" : ""} ${name || agentId}`,
    detail: name && name.toLowerCase() !== agentId.toLowerCase() ? agentId : "",
    icon: ACTIONS[action].icon,
    deed: { kind: "steer", action, agentId },
  };
}

function agentEntry(agent: Agent): Entry {
  const { agentId, name } = agent;
  const deed: Deed = { kind: "go", parts: ["agents", agentId] };
  return {
    id: `agent ${agentId}`,
    group: "Agents",
    title: name || agentId,
    detail: inWords(lookOf(agent)),
    icon: "agent",
    deed,
  };
}

function roomEntry({ roomId, title, members }: Room): Entry {
  const deed: Deed = { kind: "go", parts: ["chats", roomId] };
  const name = title || members.join(", ") || roomId;
  return { id: `room ${roomId}`, group: "Rooms", title: name, detail: `${members.length} in it`, icon: "chats", deed };
}

function sessionEntry({ sessionId, title }: SessionSummary): Entry {
  const deed: Deed = { kind: "session", sessionId };
  return {
    id: `session ${sessionId}`,
    group: "Sessions",
    title: title || sessionId,
    detail: title ? sessionId : "",
    icon: "fleet",
    deed,
  };
}
