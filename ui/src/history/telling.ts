import type { Notification, NotificationName, NotificationOf, Notifications } from "../client/client";
import { clockTime, count, duration, money, words } from "../parts/format";

/** How an agent is called. */
export type NameOf = (agentId: string) => string;

type Tellings = { [N in NotificationName]: (params: Notifications[N], name: NameOf) => string };

const MOST_QUOTED = 140;

const OF_AGENTS = {
  "agent.created": ({ agentId, description }, name) => `${name(agentId)} was created${after(description)}`,
  "agent.started": ({ agentId, reason }, name) => `${name(agentId)} was started${after(reason)}`,
  "agent.paused": ({ agentId, reason }, name) => `${name(agentId)} was paused${after(reason)}`,
  "agent.resumed": ({ agentId, reason }, name) => `${name(agentId)} was resumed${after(reason)}`,
  "agent.stopped": ({ agentId, reason }, name) => `${name(agentId)} was stopped${after(reason)}`,
  "agent.state_changed": ({ agentId, from, to, reason, ...sleep }, name) =>
    `${name(agentId)} went from ${from} to ${to}${until(sleep)}${after(reason)}`,
  "agent.sleep_changed": ({ agentId, reason, ...sleep }, name) =>
    `${name(agentId)} will sleep${until(sleep)}${after(reason)}`,
  "agent.redefined": ({ agentId }, name) => `${name(agentId)} has a new definition`,
  "agent.tools_missing": ({ agentId, tools }, name) => `${name(agentId)} waits for tools: ${listed(tools)}`,
  "agent.failing": ({ agentId, reason }, name) => `${name(agentId)} fails too often and is stopped${after(reason)}`,
} satisfies Partial<Tellings>;

const OF_TASKS = {
  "async.task.queued": ({ agentId, kind, priority, summary }, name) => {
    const urgency = priority === "normal" ? "" : `, ${priority} priority`;
    return `${name(agentId)} was given a task (${words(kind)}${urgency})${after(summary)}`;
  },
  "async.task.started": ({ agentId, kind, attempt }, name) =>
    `${name(agentId)} began to work (${words(kind)}${attempt > 1 ? `, attempt ${attempt}` : ""})`,
  "async.task.progress": ({ agentId, percent, note }, name) =>
    `${name(agentId)} is ${percent === null ? "at work" : `${Math.round(percent)} % done`}${after(note)}`,
  "async.task.completed": ({ agentId, result }, name) => `${name(agentId)} finished its task${after(result?.final)}`,
  "async.task.continuation": ({ agentId, number }, name) =>
    `${name(agentId)} asked for more and continues (continuation ${number})`,
  "async.task.error": ({ agentId, state, error }, name) =>
    `A task of ${name(agentId)} ${state === "dead" ? "became a dead letter" : "failed"}${after(error?.message)}`,
  "async.task.cancelled": ({ agentId, reason }, name) => `A task of ${name(agentId)} was cancelled${after(reason)}`,
  "async.task.dismissed": ({ agentId }, name) => `A task of ${name(agentId)} was taken off the dead letters`,
  "async.task.restarting": ({ agentId, notBefore, error }, name) =>
    `A task of ${name(agentId)} crashed and begins again at ${clockTime(notBefore)}${after(error?.message)}`,
  "async.task.delta": ({ agentId, channel, text }, name) => `${name(agentId)} writes (${channel})${after(text)}`,
  "step.output": ({ agentId, text }, name) => `A tool of ${name(agentId)} writes${after(text)}`,
  "step.started": ({ agentId, kind, tool }, name) =>
    kind === "tool" ? `${name(agentId)} calls ${tool ?? "a tool"}` : `${name(agentId)} asks its model`,
  "step.retried": ({ agentId, attempt, error, retryAt }, name) =>
    `The model of ${name(agentId)} failed (attempt ${attempt}); again at ${clockTime(retryAt)}${after(error?.message)}`,
  "step.interrupted": ({ agentId }, name) => `The model request of ${name(agentId)} was cut off`,
  "step.finished": (params, name) => finished(params, name),
} satisfies Partial<Tellings>;

const OF_TALK = {
  "mail.sent": ({ sender, recipient, subject, replyTo }, name) =>
    `${name(sender)} ${replyTo === null ? "mailed" : "replied to"} ${name(recipient)}${after(subject)}`,
  "mail.state_changed": ({ agentId, state }, name) => `A mail to ${name(agentId)} was ${MAIL_STATES[state] ?? state}`,
  "event.broadcast": ({ sender, event, woken, notified }, name) =>
    `${name(sender)} broadcast the event ${event}: ${count(woken)} woken, ${count(notified)} told`,
  "event.not_taken": ({ agentId, event }, name) => `${name(agentId)} did not get the event ${event}: its queue is full`,
  "room.created": ({ title, members }, name) =>
    `${title === "" ? "A chat" : `The room "${title}"`} was opened with ${listed(members.map((member) => name(member)))}`,
  "room.member_added": ({ agentId, roomId }, name) => `${name(agentId)} joined the room ${roomId}`,
  "room.member_removed": ({ agentId, roomId }, name) => `${name(agentId)} left the room ${roomId}`,
  "room.message": ({ sender, text }, name) => `${name(sender)} said${after(text)}`,
  "room.answering": ({ agentId, number }, name) => `${name(agentId)} is about to answer message ${number}`,
  "room.passed": ({ agentId, number }, name) => `${name(agentId)} passed on message ${number}`,
  "room.unanswered": ({ agentId, number, error }, name) =>
    `${name(agentId)} did not answer message ${number}${after(error?.message)}`,
  "room.absent": ({ agentId, number, reason }, name) =>
    `${name(agentId)} was not asked about message ${number}${after(reason)}`,
  "room.hop_limit": ({ agentId, mentions, hopLimit }, name) =>
    `${name(agentId)} asked ${listed(mentions)} without effect: agents may ask each other ${hopLimit} times in a row`,
  "switch.began": ({ agentId, toAgent, depth }, name) =>
    `${name(agentId)} asked ${name(toAgent)} and waits for the answer${depth > 1 ? ` (depth ${depth})` : ""}`,
  "switch.ended": ({ agentId, toAgent, outcome }, name) =>
    `${name(agentId)} no longer waits for ${name(toAgent)}: ${words(outcome)}`,
} satisfies Partial<Tellings>;

const OF_CONTROL = {
  "schedule.created": ({ scheduleId, cron, intervalSeconds }) =>
    `The schedule ${scheduleId} was created: ${cron ?? (intervalSeconds === null ? "once" : `every ${duration(intervalSeconds)}`)}`,
  "schedule.changed": ({ scheduleId, paused, reason }) =>
    `The schedule ${scheduleId} was ${paused ? "paused" : "resumed"}${after(reason)}`,
  "schedule.deleted": ({ scheduleId }) => `The schedule ${scheduleId} was removed`,
  "schedule.fired": ({ scheduleId, nextAt }) =>
    `The schedule ${scheduleId} fired${nextAt === null ? ", for the last time" : `; next at ${clockTime(nextAt)}`}`,
  "schedule.missed": ({ scheduleId, count: times, reason }) =>
    `The schedule ${scheduleId} missed ${count(times)} due times${after(reason)}`,
  "approval.requested": ({ agentId, tool }, name) => `${name(agentId)} wants to call ${tool} and waits for a person`,
  "approval.approved": ({ agentId, tool, decidedBy, reason }, name) =>
    `${decidedBy} allowed ${name(agentId)} to call ${tool}${after(reason)}`,
  "approval.refused": ({ agentId, tool, decidedBy, reason }, name) =>
    `${decidedBy} refused ${name(agentId)} the call of ${tool}${after(reason)}`,
  "approval.withdrawn": ({ agentId, tool, reason }, name) =>
    `${name(agentId)} no longer wants to call ${tool}${after(reason)}`,
  "lock.waiting": ({ waiter, name: lock, holder }, name) =>
    `${name(waiter)} waits for the lock ${lock}, which ${name(holder)} has`,
  "lock.wait_ended": ({ waiter, name: lock, outcome }, name) =>
    `${name(waiter)} no longer waits for the lock ${lock}: ${words(outcome)}`,
  "lock.acquired": ({ holder, name: lock, expiresAt }, name) =>
    `${name(holder)} has the lock ${lock} until ${clockTime(expiresAt)}`,
  "lock.renewed": ({ holder, name: lock, expiresAt }, name) =>
    `${name(holder)} keeps the lock ${lock} until ${clockTime(expiresAt)}`,
  "lock.released": ({ holder, name: lock }, name) => `${name(holder)} released the lock ${lock}`,
  "lock.expired": ({ holder, name: lock }, name) => `The lock ${lock} of ${name(holder)} ran out`,
  "lock.broken": ({ holder, name: lock, by, reason }, name) =>
    `${by} took the lock ${lock} from ${name(holder)}${after(reason)}`,
  "limit.reached": ({ scope, agentId, limit, used, max, action }, name) =>
    `${agentId === null ? `The ${scope}` : name(agentId)} reached the limit ${words(limit)} (${count(used)} of ${count(max)}): ${words(action)}`,
  "limits.changed": ({ scope, agentId, limits }, name) =>
    `The limits of ${agentId === null ? `the ${scope}` : name(agentId)} were changed: ${listed(Object.keys(limits).map(words))}`,
  "mcp.server_started": ({ name: server }) => `The MCP server ${server} was started`,
  "mcp.server_failed": ({ name: server, error }) => `The MCP server ${server} failed${after(error)}`,
  "mcp.server_stopped": ({ name: server }) => `The MCP server ${server} was stopped`,
  "mcp.tools_listed": ({ name: server, tools, problems }) =>
    `The MCP server ${server} has ${count(tools.length)} tools${after(problems.join("; "))}`,
  "mcp.tools_missing": ({ agentId, tools }, name) => `${name(agentId)} lacks tools of MCP servers: ${listed(tools)}`,
  "resource.waiting": ({ agentId, resources, holders }, name) =>
    `A tool of ${name(agentId)} waits for ${listed(resources)}${holders.length > 0 ? `, in use by ${listed(holders.map((holder) => name(holder)))}` : ""}`,
  "resource.granted": ({ agentId, resources, waitedSeconds }, name) =>
    `A tool of ${name(agentId)} has ${listed(resources)} after ${duration(waitedSeconds)}`,
  "session.opened": () => "The session was opened again",
  "clock.changed": ({ clockOffsetSeconds: offset }) =>
    offset === 0
      ? "The session goes by the wall clock again"
      : `The wall clock was set: it is ${duration(Math.abs(offset))} ${offset > 0 ? "ahead of" : "behind"} the session's`,
  "session.closed": () => "The session was closed",
} satisfies Partial<Tellings>;

const TELLINGS: Tellings = { ...OF_AGENTS, ...OF_TASKS, ...OF_TALK, ...OF_CONTROL };

const MAIL_STATES: Partial<Record<string, string>> = {
  dead: "moved to the dead letters",
  replied: "replied to",
  queued: "queued",
};

/** What a notification says, as a short sentence without its full stop. One of an unknown kind is told by its name. */
export function telling(note: Notification, name: NameOf = (agentId) => agentId): string {
  const tell = TELLINGS[note.name] as ((params: object, name: NameOf) => string) | undefined;
  try {
    return tell?.(note.params, name) ?? words(note.name.replaceAll(".", " "));
  } catch {
    return words(note.name.replaceAll(".", " ")); // an old log may lack a field that newer ones have
  }
}

/** The agent that a notification is about; who sent it, where it is about nobody else. */
export function agentOf(note: Notification): string | null {
  const { agentId, sender } = note.params as { agentId?: string | null; sender?: string };
  return agentId ?? sender ?? null;
}

function finished({ agentId, kind, tool, state, usage, isError, error }: Notifications["step.finished"], name: NameOf) {
  const outcome = state === "failed" || isError ? "failed" : "ended";
  if (kind === "tool") return `${tool ?? "A tool"} of ${name(agentId)} ${outcome}${after(error?.message)}`;
  const used = usage === undefined ? "" : `: ${count(usage.inputTokens)} tokens in, ${count(usage.outputTokens)} out`;
  const cost = usage?.costUsd ? `, ${money(usage.costUsd)}` : "";
  const answered = outcome === "failed" ? "failed" : "answered";
  return `The model of ${name(agentId)} ${answered}${used}${cost}${after(error?.message)}`;
}

type Sleep = Pick<NotificationOf<"agent.sleep_changed">["params"], "sleepingUntil" | "wakeEvents">;

function until({ sleepingUntil, wakeEvents = [] }: Sleep): string {
  const time = sleepingUntil ? ` until ${clockTime(sleepingUntil)}` : "";
  return wakeEvents.length > 0 ? `${time}${time && ","} for ${listed(wakeEvents)}` : time;
}

/** What follows a colon, in one line; nothing if there is nothing. */
function after(text: string | undefined): string {
  const line = (text ?? "")
    .slice(0, MOST_QUOTED * 2)
    .replace(/\s+/g, " ")
    .trim();
  if (line === "") return "";
  return `: ${line.length > MOST_QUOTED ? `${line.slice(0, MOST_QUOTED)}…` : line}`;
}

function listed(values: readonly string[]): string {
  return values.length > 5 ? `${values.slice(0, 5).join(", ")} and ${values.length - 5} more` : values.join(", ");
}
