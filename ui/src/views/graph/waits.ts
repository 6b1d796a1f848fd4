import { isForPerson } from "../../parts/hindrances";
import { USER } from "../../projection/coordination";
import type { Wait, World } from "../../projection/world";

/** Everything that one waits for another for, as one arrow from who waits to whom is waited for. */
export interface WaitLine {
  readonly from: string;
  readonly to: string;
  readonly waits: readonly Wait[];
}

type Waiting = Pick<World, "agents" | "waits" | "locks">;

/** Who waits for whom. People and programs, and whoever is to decide on an approval or to answer, are the user. */
export function waitLines(world: Waiting): WaitLine[] {
  const lines = new Map<string, { from: string; to: string; waits: Wait[] }>();
  for (const wait of world.waits.values()) {
    const from = wait.agentId ?? USER;
    for (const to of awaited(world, wait)) {
      if (to === from) continue;
      const key = `${from}~${to}`;
      const line = lines.get(key) ?? { from, to, waits: [] };
      line.waits.push(wait);
      lines.set(key, line);
    }
  }
  return [...lines.values()];
}

function awaited({ agents, locks }: Waiting, wait: Wait): Set<string> {
  if (isForPerson(wait)) return new Set([USER]);
  const held = wait.kind === "lock" ? locks.get(wait.target) : undefined;
  const holders = held === undefined ? wait.holders : [held.agentId ?? held.holder];
  return new Set(holders.map((holder) => (agents.has(holder) ? holder : USER)));
}

const MOST_CHAINS = 50;

/**
 * The paths along which waits follow each other, each as long as it can be: from somebody for whom nobody waits to
 * somebody who waits for nobody. The longest come first, and there are never more than fifty.
 */
export function waitChains(lines: readonly Pick<WaitLine, "from" | "to">[]): string[][] {
  const next = new Map<string, string[]>();
  const isAwaited = new Set<string>();
  for (const { from, to } of lines) {
    next.set(from, [...(next.get(from) ?? []), to]);
    isAwaited.add(to);
  }
  const chains: string[][] = [];
  const walk = (path: string[]): void => {
    if (chains.length >= MOST_CHAINS) return;
    const further = (next.get(path.at(-1) as string) ?? []).filter((to) => !path.includes(to));
    if (further.length === 0) chains.push(path);
    for (const to of further) walk([...path, to]);
  };
  const firsts = [...next.keys()].filter((from) => !isAwaited.has(from));
  for (const from of firsts) walk([from]);
  const seen = new Set(chains.flat());
  for (const from of next.keys()) {
    if (seen.has(from)) continue;
    walk([from]);
    for (const each of chains.at(-1) ?? []) seen.add(each);
  }
  return chains.sort((a, b) => b.length - a.length);
}
