import type { AgentStatus, Priority, RoomKind, StepKind, TaskKind } from "../client/client";

/**
 * Everything that the page shows of a session, as it was right after one notification. It is never changed in place:
 * the reducer makes another that shares what did not change.
 */
export interface World {
  /** The number of the last notification in it, and when that was. */
  readonly seq: number;
  readonly at: number;
  /** How far the wall clock of the server is ahead of the session's, on which all that happened has its time. */
  readonly clockOffsetSeconds: number;
  readonly agents: ReadonlyMap<string, Agent>;
  /** Those that have not ended. */
  readonly tasks: ReadonlyMap<string, Task>;
  /** What tasks wait for, by the step or, for people at a lock, by waiter and lock. */
  readonly waits: ReadonlyMap<string, Wait>;
  readonly rooms: ReadonlyMap<string, Room>;
  /** Who had to do with whom, by `linkKey`. */
  readonly links: ReadonlyMap<string, Link>;
  /** The user's mails that are neither archived nor dead, by id, the oldest first. */
  readonly inbox: ReadonlyMap<string, InboxMail>;
  readonly locks: ReadonlyMap<string, HeldLock>;
  /** Who waits for a lock, by its name: keys of `waits`, in the order in which they get it. */
  readonly lockQueues: ReadonlyMap<string, readonly string[]>;
  /** The tool calls that wait for a person. */
  readonly approvals: ReadonlyMap<string, PendingApproval>;
  /** What agents ask the person. */
  readonly questions: ReadonlyMap<string, PendingQuestion>;
  readonly schedules: ReadonlyMap<string, Schedule>;
  /** How many tasks failed or died, and how many mails: they wait for a person. */
  readonly deadTasks: number;
  readonly deadMails: number;
}

/** What model requests and tool calls used; `costUsd` is null while no price is known. */
export interface Spent {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number | null;
  readonly modelCalls: number;
  readonly toolCalls: number;
}

export interface Agent extends Readonly<Omit<AgentStatus, "usage">> {
  readonly usage: Spent;
  /** When a task of it last began or ended, or a step of one ended; at first, when it was created. */
  readonly lastActivityAt: number;
}

export interface Task {
  readonly taskId: string;
  readonly agentId: string;
  readonly threadId: string;
  readonly kind: TaskKind;
  readonly priority: Priority;
  /** The beginning of what it is about. */
  readonly summary: string;
  readonly state: "queued" | "running";
  /** The how manieth time its loop runs, since it crashed before; 0 while it waits. */
  readonly attempt: number;
  readonly mailId: string | null;
  readonly progressPercent: number | null;
  readonly progressNote: string;
  readonly queuedAt: number;
  /** Of one that is taken up again: when it was begun before, until it is begun. */
  readonly startedAt: number | null;
  /** When a step ended last since it was begun. */
  readonly lastStepAt: number | null;
  /** What runs in it now, by step id. */
  readonly steps: ReadonlyMap<string, OpenStep>;
  /** What it waits for: keys of the world's `waits`, the oldest first. */
  readonly waits: readonly string[];
}

export interface OpenStep {
  readonly stepId: string;
  readonly kind: StepKind;
  readonly tool: string | null;
  readonly startedAt: number;
  /** Until when a request that failed waits to be repeated, and why. */
  readonly retryAt: number | null;
  readonly retryReason: string;
}

export type WaitKind = "reply" | "lock" | "approval" | "question" | "resource";

export interface Wait {
  readonly kind: WaitKind;
  /** The agent that waits; null for a person or a program. */
  readonly agentId: string | null;
  readonly taskId: string | null;
  readonly waiter: string;
  /** The agent, lock, approval, question or resource that is waited for. */
  readonly target: string;
  /** The resources, of which there may be several; else just the target. */
  readonly targets: readonly string[];
  /** Who has it in their hands, as far as that is known: the agent that is asked, the holder of the lock. */
  readonly holders: readonly string[];
  readonly since: number;
  readonly deadlineAt: number | null;
}

export interface Room {
  readonly roomId: string;
  readonly kind: RoomKind;
  readonly title: string;
  readonly members: readonly string[];
  readonly hopLimit: number;
  readonly lastNumber: number;
  readonly lastAt: number;
  /** Who is about to answer, by task. */
  readonly answering: ReadonlyMap<string, string>;
}

export type LinkKind = "mail" | "switch" | "delegation" | "event";

export interface Link {
  /** An agent, or `user`. */
  readonly from: string;
  readonly to: string;
  readonly kind: LinkKind;
  readonly count: number;
  readonly lastAt: number;
}

export interface InboxMail {
  readonly mailId: string;
  readonly threadId: string;
  readonly sender: string;
  readonly subject: string;
  readonly priority: Priority;
  readonly isRead: boolean;
  readonly at: number;
}

export interface HeldLock {
  readonly name: string;
  readonly holder: string;
  readonly agentId: string | null;
  readonly taskId: string | null;
  readonly token: number;
  readonly acquiredAt: number;
  readonly expiresAt: number;
}

export interface PendingApproval {
  readonly approvalId: string;
  readonly agentId: string;
  readonly taskId: string;
  readonly tool: string;
  readonly digest: string;
  readonly at: number;
}

export interface PendingQuestion {
  readonly questionId: string;
  readonly agentId: string;
  readonly taskId: string;
  /** The beginning of it. */
  readonly question: string;
  readonly at: number;
}

export interface Schedule {
  readonly scheduleId: string;
  readonly agentId: string | null;
  readonly cron: string | null;
  readonly intervalSeconds: number | null;
  readonly zone: string;
  readonly prompt: string | null;
  readonly event: string | null;
  /** Whether it wakes its agent if that sleeps. */
  readonly wake: boolean;
  readonly paused: boolean;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  readonly fired: number;
}

/** A session before anything happened in it. */
export const EMPTY: World = {
  seq: 0,
  at: 0,
  agents: new Map(),
  tasks: new Map(),
  waits: new Map(),
  rooms: new Map(),
  links: new Map(),
  inbox: new Map(),
  locks: new Map(),
  lockQueues: new Map(),
  approvals: new Map(),
  questions: new Map(),
  schedules: new Map(),
  deadTasks: 0,
  deadMails: 0,
  clockOffsetSeconds: 0,
};

export function linkKey(link: Pick<Link, "from" | "to" | "kind">): string {
  return `${link.kind}\n${link.from}\n${link.to}`;
}
