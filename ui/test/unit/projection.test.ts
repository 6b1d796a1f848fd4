import { describe, expect, test } from "vitest";
import type { Notification } from "../../src/client/client";
import { copyOf } from "../../src/projection/layers";
import { reduce } from "../../src/projection/reduce";
import { EMPTY, type World } from "../../src/projection/world";
import { note } from "./stage";

const ANN = note("agent.created", { agentId: "ann", name: "Ann", description: "" });

function task(agentId: string, taskId: string): Notification {
  const words = { threadId: taskId, kind: "user_prompt", priority: "normal", summary: "Work." } as const;
  return note("async.task.queued", { agentId, taskId, ...words });
}

function started(agentId: string, taskId: string): Notification {
  return note("async.task.started", {
    agentId,
    taskId,
    threadId: taskId,
    kind: "user_prompt",
    attempt: 1,
    mailId: null,
  });
}

function sent(mailId: string, sender: string, recipient: string, more: { givenTo?: string } = {}): Notification {
  const words = { threadId: mailId, sequence: 1, subject: "s", priority: "normal", replyTo: null } as const;
  return note("mail.sent", { mailId, sender, recipient, ...words, ...more });
}

function ann(world: World) {
  return world.agents.get("ann");
}

describe("a large map with changes laid over it", () => {
  test("is like a map that was changed in the same way, over any number of copies", () => {
    let chance = 1;
    const random = (most: number): number => {
      chance = (chance * 48_271) % 2_147_483_647;
      return chance % most;
    };
    const plain = new Map(Array.from({ length: 600 }, (_, index) => [`k${index}`, index]));
    let map: ReadonlyMap<string, number> = new Map(plain);
    const kinds = new Set<string>();
    for (let batch = 0; batch < 200; batch += 1) {
      const before = { map, entries: [...map] };
      const writable = copyOf(map);
      for (let change = 0; change < 1 + random(9); change += 1) {
        const key = `k${random(700)}`;
        if (random(3) > 0) {
          writable.set(key, batch);
          plain.set(key, batch);
        } else {
          expect(writable.delete(key)).toBe(plain.delete(key));
        }
        expect([writable.get(key), writable.has(key)]).toEqual([plain.get(key), plain.has(key)]);
      }
      map = writable;
      kinds.add(map.constructor.name);
      expect([...map]).toEqual([...plain]);
      expect(map.size).toBe(plain.size);
      expect([...before.map]).toEqual(before.entries);
    }
    expect(kinds).toEqual(new Set(["Layers", "Map"]));
    expect([[...map.keys()], [...map.values()]]).toEqual([[...plain.keys()], [...plain.values()]]);
  });
});

describe("the reducer", () => {
  test("leaves the world that it begins with as it was", () => {
    const before = reduce(EMPTY, [ANN, task("ann", "t1")]);
    const kept = structuredClone({ agents: before.agents, tasks: before.tasks });
    reduce(before, [started("ann", "t1"), sent("m1", "user", "ann")]);
    expect({ agents: before.agents, tasks: before.tasks }).toEqual(kept);
  });

  test("gives the same world back if there is nothing new in what it is told", () => {
    const notes = [ANN, task("ann", "t1")];
    const world = reduce(EMPTY, notes);
    expect(reduce(world, notes)).toBe(world);
    expect(reduce(world, [{ ...note("agent.redefined", { agentId: "ann" }), seq: 0 }])).toBe(world);
  });

  test("shares what did not change", () => {
    const before = reduce(EMPTY, [ANN, task("ann", "t1")]);
    const after = reduce(before, [sent("m1", "ann", "user")]);
    expect(after.tasks).toBe(before.tasks);
    expect(after.inbox).not.toBe(before.inbox);
  });

  test("counts a mail as waiting until a task has it, and again when it is given back", () => {
    let world = reduce(EMPTY, [ANN, sent("m1", "user", "ann")]);
    expect(ann(world)).toMatchObject({ queueSize: 1, unreadMail: 1 });
    const about = { agentId: "ann", mailId: "m1", taskId: "t1" };
    world = reduce(world, [note("mail.state_changed", { ...about, from: "queued", state: "delivered" })]);
    expect(ann(world)).toMatchObject({ queueSize: 0, unreadMail: 0 });
    world = reduce(world, [note("mail.state_changed", { ...about, taskId: null, from: "delivered", state: "queued" })]);
    expect(ann(world)).toMatchObject({ queueSize: 1, unreadMail: 1 });
  });

  test("does not count a mail as waiting that a task was waiting for", () => {
    expect(ann(reduce(EMPTY, [ANN, sent("m1", "ben", "ann", { givenTo: "t1" })]))).toMatchObject({ queueSize: 0 });
  });

  test("does not count a task twice that goes on after a restart, nor one that is taken up again", () => {
    let world = reduce(EMPTY, [ANN, task("ann", "t1"), started("ann", "t1"), started("ann", "t1")]);
    expect(ann(world)).toMatchObject({ tasks: 1, queueSize: 0, runningTasks: ["t1"] });
    const error = { code: "refused", message: "No." };
    world = reduce(world, [note("async.task.error", { agentId: "ann", taskId: "t1", state: "failed", error })]);
    expect(world.deadTasks).toBe(1);
    const again = { state: "failed", createdAt: 1, startedAt: 2, progressPercent: 50, progressNote: "half" } as const;
    const { params } = task("ann", "t1") as Extract<Notification, { name: "async.task.queued" }>;
    world = reduce(world, [note("async.task.queued", { ...params, again })]);
    expect(world.deadTasks).toBe(0);
    expect(world.tasks.get("t1")).toMatchObject({ queuedAt: 1, startedAt: 2, progressPercent: 50 });
    expect(ann(reduce(world, [started("ann", "t1")]))).toMatchObject({ tasks: 1, queueSize: 0, progressNote: "half" });
  });

  test("lets those who wait for a lock wait for its new holder", () => {
    const held = { name: "door", agentId: null, taskId: null, token: 1, expiresAt: 9_000 };
    const wait = { name: "door", waiter: "ann", agentId: "ann", taskId: "t1", stepId: "t1.1" };
    let world = reduce(EMPTY, [
      ...[ANN, task("ann", "t1"), started("ann", "t1"), note("lock.acquired", { ...held, holder: "eve" })],
      note("lock.waiting", { ...wait, holder: "eve", deadlineAt: 9_000 }),
      note("lock.acquired", { ...held, holder: "bob", token: 2 }),
    ]);
    expect(world.waits.get("t1.1")?.holders).toEqual(["bob"]);
    expect(ann(world)?.waitingFor).toEqual(["lock:door"]);
    world = reduce(world, [note("lock.wait_ended", { ...wait, outcome: "acquired" })]);
    expect([world.lockQueues.size, ann(world)?.waitingFor]).toEqual([0, []]);
  });

  test("forgets at a restart who waits in memory alone", () => {
    const about = { agentId: "ann", taskId: "t1", stepId: "t1.1", access: "write" };
    const person = { name: "door", agentId: null, taskId: null, stepId: null };
    let world = reduce(EMPTY, [
      ...[ANN, task("ann", "t1"), started("ann", "t1")],
      note("resource.waiting", { ...about, resources: ["file:a", "file:b"], holders: ["ben"] }),
      note("lock.waiting", { ...person, waiter: "eve", waitId: "w1", holder: "ben", deadlineAt: 9_000 }),
      note("lock.waiting", { ...person, waiter: "eve", waitId: "w2", holder: "ben", deadlineAt: 9_000 }),
    ]);
    expect(world.lockQueues.get("door")).toEqual(["w1", "w2"]);
    expect(ann(world)?.pausedFor).toEqual(["file:a", "file:b"]);
    world = reduce(world, [note("session.opened", {})]);
    expect([world.waits.size, world.lockQueues.size, ann(world)?.pausedFor]).toEqual([0, 0, []]);
  });

  test("moves what lasts for a while when the wall clock is set, and nothing else", () => {
    const asleep = { from: "idle", to: "sleeping", action: "sleep" } as const;
    const schedule = { agentId: "ann", zone: "UTC", prompt: "p", event: null, data: null, missed: "once" } as const;
    let world = reduce(EMPTY, [
      ...[ANN, note("agent.created", { agentId: "ben", name: "Ben", description: "" })],
      note("agent.state_changed", { agentId: "ann", ...asleep, sleepingUntil: 9_000 }),
      note("agent.state_changed", { agentId: "ben", ...asleep, sleepingUntil: 9_000, sleepingByWallClock: true }),
      note("lock.acquired", { name: "door", agentId: null, taskId: null, holder: "eve", token: 1, expiresAt: 9_000 }),
      note("schedule.created", { scheduleId: "s", ...schedule, cron: null, intervalSeconds: 5, nextAt: 9_000 }),
      note("schedule.created", {
        scheduleId: "c",
        ...schedule,
        cron: "* * * * *",
        intervalSeconds: null,
        nextAt: 9_000,
      }),
    ]);
    const times = () => [
      ...[ann(world)?.sleepingUntil, world.agents.get("ben")?.sleepingUntil, world.locks.get("door")?.expiresAt],
      ...["s", "c"].map((id) => world.schedules.get(id)?.nextAt),
    ];
    world = reduce(world, [note("clock.changed", { clockOffsetSeconds: -3_600 })]);
    expect([world.clockOffsetSeconds, times()]).toEqual([-3_600, [5_400, 9_000, 5_400, 5_400, 9_000]]);
    world = reduce(world, [note("session.opened", {})]);
    expect([world.clockOffsetSeconds, times()]).toEqual([0, [9_000, 9_000, 9_000, 9_000, 9_000]]);
  });

  test("says of an agent what its oldest task does", () => {
    let world = reduce(EMPTY, [ANN, task("ann", "t1"), task("ann", "t2"), started("ann", "t1"), started("ann", "t2")]);
    world = reduce(world, [note("async.task.progress", { agentId: "ann", taskId: "t2", percent: 70, note: "" })]);
    expect(ann(world)).toMatchObject({ progressPercent: null, runningTasks: ["t1", "t2"] });
    world = reduce(world, [note("async.task.cancelled", { agentId: "ann", taskId: "t1", reason: "" })]);
    expect(ann(world)).toMatchObject({ progressPercent: 70, runningSince: world.tasks.get("t2")?.startedAt });
  });
});

describe("an agent", () => {
  const about = { agentId: "ann", taskId: "t" };
  const error = { code: "model_error", message: "503" };
  const step = (attempt: number) => note("step.started", { ...about, stepId: "t.1", kind: "model", attempt });
  const begun = [task("ann", "t"), started("ann", "t"), step(1)];
  const retried = note("step.retried", { ...about, stepId: "t.1", attempt: 1, error, retryAt: 50 });

  test("shows when its model is asked again, until it is, by the wall clock as it is set", () => {
    expect(ann(reduce(EMPTY, [ANN, ...begun]))?.retryAt).toBeNull();
    const waiting = reduce(EMPTY, [ANN, ...begun, retried]);
    expect(ann(waiting)?.retryAt).toBe(50);
    const later = reduce(waiting, [note("clock.changed", { clockOffsetSeconds: 7 } as never)]);
    expect(ann(later)?.retryAt).toBe(57);
    expect([...(later.tasks.get("t")?.steps.values() ?? [])]).toMatchObject([{ retryAt: 57, retryReason: "503" }]);
    expect(ann(reduce(later, [step(2)]))?.retryAt).toBeNull();
  });

  test("shows how many of its tasks failed and wait for a person", () => {
    const failed = note("async.task.error", { ...about, state: "failed", error });
    const world = reduce(EMPTY, [ANN, ...begun, retried, failed]);
    expect(ann(world)).toMatchObject({ deadTasks: 1, retryAt: null });
    expect(ann(reduce(world, [note("async.task.dismissed", about)]))?.deadTasks).toBe(0);
    const again = note("async.task.queued", { ...task("ann", "t").params, again: { state: "failed" } } as never);
    expect(ann(reduce(world, [again]))?.deadTasks).toBe(0);
  });
});
