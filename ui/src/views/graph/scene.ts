import { USER } from "../../projection/coordination";
import { type Agent, type Link, type LinkKind, linkKey, type World } from "../../projection/world";
import { type WaitLine, waitLines } from "./waits";

export const KINDS: readonly LinkKind[] = ["mail", "switch", "delegation", "event"];
export type ShownKind = LinkKind | "wait";
export const ALL_KINDS: readonly ShownKind[] = [...KINDS, "wait"];

/** `some`: of the agents that have nothing to do with any other, only so many as can be looked over. */
export type WhichAgents = "some" | "linked" | "all";

export interface Filters {
  readonly kinds: ReadonlySet<ShownKind>;
  /** Links that were not used since then are left out. */
  readonly since: number;
  readonly agents: WhichAgents;
  /** Only agents with this in their name or id, and whoever they have to do with. */
  readonly query: string;
}

/** All links from one to another, as one line with a lane for each kind. */
export interface Bundle {
  readonly from: string;
  readonly to: string;
  readonly kinds: readonly LinkKind[];
}

/** What is drawn. */
export interface Scene {
  readonly nodes: readonly string[];
  readonly bundles: readonly Bundle[];
  readonly waits: readonly WaitLine[];
  /** How many agents match what is looked for but are not drawn, since they have no links or there are too many. */
  readonly hidden: number;
}

/** How many agents without links are drawn unless all are asked for, and how many agents at most. */
export const MOST_UNLINKED = 60;
export const MOST_NODES = 1_500;

export function pairOf({ from, to }: { from: string; to: string }): string {
  return `${from}~${to}`;
}

/** One line for each pair that has links, in each direction that has. */
export function bundled(links: Iterable<Link>): Bundle[] {
  const kinds = new Map<string, { from: string; to: string; kinds: LinkKind[] }>();
  for (const { from, to, kind } of links) {
    const pair = pairOf({ from, to });
    const bundle = kinds.get(pair);
    if (bundle === undefined) kinds.set(pair, { from, to, kinds: [kind] });
    else bundle.kinds.push(kind);
  }
  for (const bundle of kinds.values()) bundle.kinds.sort((a, b) => KINDS.indexOf(a) - KINDS.indexOf(b));
  return [...kinds.values()];
}

export function sceneOf(world: World, filters: Filters): Scene {
  const isKnown = (id: string) => id === USER || world.agents.has(id);
  const links = [...world.links.values()].filter(
    ({ from, to, kind, lastAt }) =>
      filters.kinds.has(kind) && lastAt >= filters.since && from !== to && isKnown(from) && isKnown(to),
  );
  const bundles = bundled(links);
  const waits = filters.kinds.has("wait") ? waitLines(world) : [];
  const matches = matching(world.agents, filters.query);
  const near = neighbours([...bundles, ...waits], matches);
  const { nodes, hidden } = chosen(world.agents, { near, matches, filters });
  const isDrawn = new Set(nodes);
  const inSight = ({ from, to }: { from: string; to: string }) => isDrawn.has(from) && isDrawn.has(to);
  return { nodes, bundles: bundles.filter(inSight), waits: waits.filter(inSight), hidden };
}

function matching(agents: ReadonlyMap<string, Agent>, query: string): (id: string) => boolean {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return () => true;
  return (id) =>
    id.toLowerCase().includes(wanted) || (agents.get(id)?.name.toLowerCase().includes(wanted) ?? id === wanted);
}

/** Both ends of each line of which one matches. */
function neighbours(lines: readonly { from: string; to: string }[], matches: (id: string) => boolean): Set<string> {
  const near = new Set<string>();
  for (const { from, to } of lines) {
    if (!matches(from) && !matches(to)) continue;
    near.add(from);
    near.add(to);
  }
  return near;
}

interface Choice {
  readonly near: ReadonlySet<string>;
  readonly matches: (id: string) => boolean;
  readonly filters: Filters;
}

function chosen(agents: World["agents"], { near, matches, filters }: Choice): Pick<Scene, "nodes" | "hidden"> {
  const linked: string[] = [];
  const unlinked: string[] = [];
  for (const id of agents.keys()) {
    if (near.has(id)) linked.push(id);
    else if (matches(id)) unlinked.push(id);
  }
  const room = { linked: 0, some: MOST_UNLINKED, all: Number.POSITIVE_INFINITY }[filters.agents];
  const drawn = [...linked, ...unlinked.slice(0, room)].slice(0, MOST_NODES);
  const hasUser = near.has(USER) || (filters.query.trim() === "" && filters.agents !== "linked" && agents.size > 0);
  return { nodes: hasUser ? [USER, ...drawn] : drawn, hidden: linked.length + unlinked.length - drawn.length };
}

/** How often each kind of a bundle was used, as a text that is the same while nothing changes: `3,0,1,0`. */
export function countsOf(links: World["links"], { from, to }: { from: string; to: string }): string {
  return KINDS.map((kind) => links.get(linkKey({ from, to, kind }))?.count ?? 0).join(",");
}

/** The keys of the links that were used between two moments. */
export function usedLinks(before: World["links"], after: World["links"]): string[] {
  if (before === after) return [];
  const used: string[] = [];
  for (const [key, link] of after) {
    if (before.get(key) !== link) used.push(key);
  }
  return used;
}
