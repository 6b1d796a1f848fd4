import { isContinuation } from "../../parts/continuations";
import { isForPerson, restOf } from "../../parts/hindrances";
import type { Agent, Task, Wait, World } from "../../projection/world";

/** What an agent that is to answer is at. */
export type Doing =
  /** It works: nothing has to be done about it. */
  | { readonly kind: "works"; readonly words: string }
  /** Something else has to happen first. `isOther`: it is another task of it that waits, before which this has no turn. */
  | { readonly kind: "waits"; readonly wait: Wait; readonly isOther: boolean }
  /** Its model could not be asked. */
  | { readonly kind: "retries"; readonly at: number; readonly reason: string }
  /** It does not go on by itself, or not before its time; what helps is on its page. */
  | { readonly kind: "rests"; readonly words: string };

type Around = Pick<World, "agents" | "tasks" | "waits">;

/** What an agent is at with a turn in a room: what a person can do something about before all else. */
export function doingOf(world: Around, agentId: string, turnId: string): Doing {
  const agent = world.agents.get(agentId);
  const task = taskOf(world, agent, turnId);
  const own = waitOf(world, task);
  if (own !== undefined) return { kind: "waits", wait: own, isOther: false };
  const rest = agent && restOf(agent);
  if (rest) return { kind: "rests", words: rest };
  for (const { retryAt, retryReason, tool } of task?.steps.values() ?? []) {
    if (retryAt !== null) return { kind: "retries", at: retryAt, reason: retryReason };
    if (tool !== null) return { kind: "works", words: `uses ${tool}…` };
  }
  if (task?.state !== "queued") return { kind: "works", words: "is thinking…" };
  for (const taskId of agent?.runningTasks ?? []) {
    const wait = waitOf(world, world.tasks.get(taskId));
    if (wait !== undefined) return { kind: "waits", wait, isOther: true };
  }
  return { kind: "works", words: "waits for its turn…" };
}

/** The task of a turn, or the one in which it goes on. */
function taskOf({ tasks }: Around, agent: Agent | undefined, turnId: string): Task | undefined {
  const running = agent?.runningTasks.find((id) => isContinuation(id, turnId));
  return tasks.get(turnId) ?? tasks.get(running ?? "");
}

/** What the task waits for, a person before all else. */
function waitOf({ waits }: Around, task: Task | undefined): Wait | undefined {
  const found = (task?.waits ?? []).flatMap((key) => waits.get(key) ?? []);
  return found.find(isForPerson) ?? found[0];
}
