import type { Snapshot, Usage } from "../client/client";
import { linkKey, type Spent, type Task, type Wait, type World } from "./world";

/** The world that a snapshot of the session shows. */
export function worldOf(snapshot: Snapshot): World {
  const waits = new Map<string, Wait>();
  const lockQueues = new Map<string, string[]>();
  const waitsOfTasks = new Map<string, string[]>();
  for (const { waitId, ...wait } of snapshot.waits) {
    waits.set(waitId, wait);
    if (wait.kind === "lock") listed(lockQueues, wait.target).push(waitId);
    if (wait.taskId !== null) listed(waitsOfTasks, wait.taskId).push(waitId);
  }
  return {
    seq: snapshot.lastSeq,
    at: snapshot.at,
    clockOffsetSeconds: snapshot.clockOffsetSeconds,
    agents: by(
      snapshot.agents.map((agent) => ({ ...agent, usage: spent(agent.usage) })),
      "agentId",
    ),
    tasks: by(
      snapshot.tasks.map((task) => ({
        ...task,
        state: task.state as Task["state"],
        steps: by(task.steps, "stepId"),
        waits: waitsOfTasks.get(task.taskId) ?? [],
      })),
      "taskId",
    ),
    waits,
    lockQueues,
    rooms: by(
      snapshot.rooms.map((room) => ({ ...room, answering: new Map(Object.entries(room.answering)) })),
      "roomId",
    ),
    links: new Map(snapshot.links.map((link) => [linkKey(link), link])),
    inbox: by(
      snapshot.inbox.map(({ arrival: _, ...mail }) => mail),
      "mailId",
    ),
    locks: by(snapshot.locks, "name"),
    approvals: by(snapshot.approvals, "approvalId"),
    questions: by(snapshot.questions, "questionId"),
    schedules: by(snapshot.schedules, "scheduleId"),
    deadTasks: snapshot.deadTasks,
    deadMails: snapshot.deadMails,
  };
}

function spent({ inputTokens, outputTokens, costUsd, modelCalls, toolCalls }: Usage): Spent {
  return { inputTokens, outputTokens, costUsd, modelCalls, toolCalls };
}

function by<Key extends string, Value extends { [K in Key]: string }>(values: readonly Value[], key: Key) {
  return new Map(values.map((value) => [value[key] as string, value]));
}

function listed(lists: Map<string, string[]>, key: string): string[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: string[] = [];
  lists.set(key, list);
  return list;
}
