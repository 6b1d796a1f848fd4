import { execFile } from "node:child_process";
import { beforeAll, describe, expect, test } from "vitest";
import type { Notification, Snapshot } from "../src/client/client";
import { reduce } from "../src/projection/reduce";
import { worldOf } from "../src/projection/snapshot";
import { EMPTY } from "../src/projection/world";
import { PYTHON, ROOT } from "./server";
import { plain } from "./worlds";

const SEEDS = Number(process.env.WHISPERER_WORLD_SEEDS ?? 20);
const FIRST = Number(process.env.WHISPERER_WORLD_FIRST_SEED ?? 0);

interface Life {
  seed: number;
  notes: Notification[];
  snapshots: Snapshot[];
}

interface Frame {
  method: string;
  params: { seq: number; sessionId: string; cause: string; at: number };
}

let lives: Life[] = [];

beforeAll(async () => {
  lives = (
    await Promise.all([some(FIRST, Math.ceil(SEEDS / 2)), some(FIRST + Math.ceil(SEEDS / 2), SEEDS >> 1)])
  ).flat();
});

/** Random lives of sessions, as a program plays them. */
async function some(first: number, count: number): Promise<Life[]> {
  const told = await new Promise<string>((resolve, reject) => {
    const options = { cwd: ROOT, env: { ...process.env, PYTHONPATH: ROOT }, maxBuffer: 1 << 30 };
    const program = `${import.meta.dirname}/worlds.py`;
    execFile(PYTHON, [program, `${first}`, `${count}`], options, (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    );
  });
  return told.trim().split("\n").map(lifeOf);
}

function lifeOf(line: string): Life {
  const { seed, notes, snapshots } = JSON.parse(line) as { seed: number; notes: Frame[]; snapshots: Snapshot[] };
  return { seed, notes: notes.map(noteOf), snapshots };
}

function noteOf({ method, params: { seq, sessionId, cause, at, ...params } }: Frame): Notification {
  return { seq, sessionId, cause, at, name: method, params } as Notification;
}

function chanceOf(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** The notifications cut into batches of any length, some of them handed over twice. */
function* batches(notes: readonly Notification[], chance: () => number): Generator<readonly Notification[]> {
  let next = 0;
  while (next < notes.length) {
    const from = Math.max(0, next - (chance() < 0.3 ? Math.floor(chance() * 50) : 0));
    next += 1 + Math.floor(chance() * (chance() < 0.5 ? 3 : 300));
    yield notes.slice(from, next);
  }
}

describe("a world that is kept up to date by the log", () => {
  test("is what the server says it is, at every moment at which it was asked", () => {
    for (const { seed, notes, snapshots } of lives) {
      let [world, next] = [EMPTY, 0];
      for (const snapshot of snapshots.toSorted((one, other) => one.lastSeq - other.lastSeq)) {
        world = reduce(world, notes.slice(next, snapshot.lastSeq));
        next = snapshot.lastSeq;
        expect(plain(world), `seed ${seed} at ${next}`).toEqual(plain(worldOf(snapshot)));
      }
    }
  });

  test("is the same if it begins with a snapshot", () => {
    for (const { seed, notes, snapshots } of lives) {
      const end = plain(reduce(EMPTY, notes));
      for (const snapshot of snapshots) {
        const world = reduce(worldOf(snapshot), notes.slice(snapshot.lastSeq));
        expect(plain(world), `seed ${seed} from ${snapshot.lastSeq}`).toEqual(end);
      }
    }
  });

  test("is the same however the log is cut, and if parts of it come twice", () => {
    for (const { seed, notes } of lives) {
      const chance = chanceOf(seed);
      let world = EMPTY;
      for (const batch of batches(notes, chance)) world = reduce(world, batch);
      expect(plain(world), `seed ${seed}`).toEqual(plain(reduce(EMPTY, notes)));
    }
  });

  test("has seen most of what can happen", () => {
    const seen = new Set<string>(lives.flatMap(({ notes }) => notes.map(({ name }) => name)));
    const wanted = [
      ...["agent.redefined", "agent.sleep_changed", "agent.tools_missing", "clock.changed", "session.opened"],
      ...["async.task.joined", "question.answered", "question.refused", "question.withdrawn"],
      ...["approval.withdrawn", "lock.broken", "lock.expired", "lock.wait_ended", "resource.granted", "switch.ended"],
      ...[
        "async.task.continuation",
        "async.task.dismissed",
        "async.task.progress",
        "async.task.restarting",
        "step.interrupted",
        "step.retried",
      ],
      ...["room.member_removed", "room.passed", "room.unanswered", "schedule.changed", "schedule.fired"],
    ];
    expect(wanted.filter((name) => !seen.has(name))).toEqual([]);
    const kinds = lives.flatMap(({ snapshots }) => snapshots.flatMap(({ waits }) => waits.map(({ kind }) => kind)));
    expect([...new Set(kinds)].sort()).toEqual(["approval", "lock", "question", "reply", "resource"]);
    const agents = lives.flatMap(({ snapshots }) => snapshots.flatMap(({ agents }) => agents));
    expect(agents.some(({ retryAt }) => retryAt !== null)).toBe(true);
    expect(agents.some(({ deadTasks }) => deadTasks > 0)).toBe(true);
  });
});
