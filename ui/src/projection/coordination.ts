import type { Draft } from "./draft";
import { link } from "./links";
import type { Changes } from "./reduce";
import { beginWait, endWait, passOn } from "./waits";

export const USER = "user";

/** Mail, waits, rooms, locks, approvals, questions and schedules. */
export const CHANGES: Changes = {
  "mail.sent": (draft, { at, params }) => {
    const { mailId, threadId, sender, recipient, subject, priority, givenTo } = params;
    link(draft, sender, recipient, "mail", at);
    if (recipient === USER)
      draft.set("inbox", mailId, { mailId, threadId, sender, subject, priority, isRead: false, at });
    else if (givenTo === undefined) countMail(draft, recipient, 1);
  },
  "mail.state_changed": (draft, { params: { agentId, mailId, from, state } }) => {
    if (state === "archived" || state === "dead") draft.delete("inbox", mailId);
    else if (state === "read" || state === "replied") draft.change("inbox", mailId, { isRead: true });
    draft.deadMails += (state === "dead" ? 1 : 0) - (from === "dead" ? 1 : 0);
    const before = from ?? (state === "delivered" ? "queued" : null); // older logs do not tell
    countMail(draft, agentId, (state === "queued" ? 1 : 0) - (before === "queued" ? 1 : 0));
  },
  "room.created": (draft, { at, params }) => {
    const { roomId, kind, title, members, hopLimit } = params;
    const room = { roomId, kind, title, members, hopLimit, lastNumber: 0, lastAt: at, answering: new Map() };
    draft.set("rooms", roomId, room);
  },
  "room.deleted": (draft, { params: { roomId } }) => draft.delete("rooms", roomId),
  "room.member_added": (draft, { params: { roomId, agentId } }) => {
    const room = draft.get("rooms", roomId);
    if (room) draft.change("rooms", roomId, { members: [...room.members, agentId] });
  },
  "room.member_removed": (draft, { params: { roomId, agentId } }) => {
    const room = draft.get("rooms", roomId);
    if (room) draft.change("rooms", roomId, { members: room.members.filter((member) => member !== agentId) });
  },
  "room.message": (draft, { at, params }) => {
    draft.change("rooms", params.roomId, { lastNumber: params.number, lastAt: at });
    if (params.taskId !== null) answered(draft, params.roomId, params.taskId);
  },
  "room.answering": (draft, { params }) => {
    const room = draft.get("rooms", params.roomId);
    const answering = new Map(room?.answering).set(params.taskId, params.agentId);
    draft.change("rooms", params.roomId, { answering });
  },
  "room.passed": (draft, { params }) => answered(draft, params.roomId, params.taskId),
  "room.joined": (draft, { params }) => answered(draft, params.roomId, params.taskId),
  "room.unanswered": (draft, { params }) => answered(draft, params.roomId, params.taskId),
  "switch.began": (draft, { at, params }) => {
    const { agentId, taskId, stepId, toAgent, deadlineAt } = params;
    link(draft, agentId, toAgent, "switch", at);
    const common = { agentId, taskId, waiter: agentId, since: at, deadlineAt };
    beginWait(draft, stepId, { kind: "reply", target: toAgent, targets: [toAgent], holders: [toAgent], ...common });
  },
  "switch.ended": (draft, { params }) => endWait(draft, params.stepId),
  "lock.waiting": (draft, { at, params }) => {
    const { name, agentId, taskId, waiter, holder, deadlineAt } = params;
    const common = { agentId, taskId, waiter, since: at, deadlineAt };
    beginWait(draft, lockWaitKey(params), {
      kind: "lock",
      target: name,
      targets: [name],
      holders: [holder],
      ...common,
    });
  },
  "lock.wait_ended": (draft, { params }) => endWait(draft, lockWaitKey(params)),
  "lock.acquired": (draft, { at, params: { name, holder, agentId, taskId, token, expiresAt } }) => {
    draft.set("locks", name, { name, holder, agentId, taskId, token, acquiredAt: at, expiresAt });
    passOn(draft, name, holder);
  },
  "lock.renewed": (draft, { params: { name, expiresAt } }) => draft.change("locks", name, { expiresAt }),
  "lock.released": (draft, { params }) => draft.delete("locks", params.name),
  "lock.expired": (draft, { params }) => draft.delete("locks", params.name),
  "lock.broken": (draft, { params }) => draft.delete("locks", params.name),
  "approval.requested": (draft, { at, params: { agentId, taskId, approvalId, tool, digest } }) => {
    draft.set("approvals", approvalId, { approvalId, agentId, taskId, tool, digest, at });
    const common = { agentId, taskId, waiter: agentId, holders: [], since: at, deadlineAt: null };
    beginWait(draft, approvalId, { kind: "approval", target: approvalId, targets: [approvalId], ...common });
  },
  "approval.approved": (draft, { params }) => decided(draft, params.approvalId),
  "approval.refused": (draft, { params }) => decided(draft, params.approvalId),
  "approval.withdrawn": (draft, { params }) => decided(draft, params.approvalId),
  "question.asked": (draft, { at, params: { agentId, taskId, questionId, question, deadlineAt } }) => {
    draft.set("questions", questionId, { questionId, agentId, taskId, question, at });
    const common = { agentId, taskId, waiter: agentId, holders: [], since: at, deadlineAt };
    beginWait(draft, questionId, { kind: "question", target: questionId, targets: [questionId], ...common });
  },
  "question.answered": (draft, { params }) => closed(draft, params.questionId),
  "question.refused": (draft, { params }) => closed(draft, params.questionId),
  "question.withdrawn": (draft, { params }) => closed(draft, params.questionId),
  "resource.waiting": (draft, { at, params: { agentId, taskId, stepId, resources, holders } }) => {
    const common = { agentId, taskId, waiter: agentId, holders, since: at, deadlineAt: null };
    beginWait(draft, stepId, { kind: "resource", target: resources.join(", "), targets: resources, ...common });
  },
  "resource.granted": (draft, { params }) => endWait(draft, params.stepId),
  "schedule.created": (draft, { params }) => {
    const { data: _data, missed: _missed, wake = false, ...schedule } = params;
    draft.set("schedules", schedule.scheduleId, { ...schedule, wake, paused: false, lastAt: null, fired: 0 });
  },
  "schedule.changed": (draft, { params: { scheduleId, paused, nextAt } }) => {
    draft.change("schedules", scheduleId, { paused, nextAt });
  },
  "schedule.deleted": (draft, { params }) => draft.delete("schedules", params.scheduleId),
  "schedule.fired": (draft, { params: { scheduleId, dueAt, nextAt } }) => {
    const fired = (draft.get("schedules", scheduleId)?.fired ?? 0) + 1;
    draft.change("schedules", scheduleId, { lastAt: dueAt, nextAt, fired });
  },
  "schedule.missed": (draft, { params: { scheduleId, nextAt } }) => draft.change("schedules", scheduleId, { nextAt }),
};

/** A mail came into the mailbox of an agent, or left it. */
function countMail(draft: Draft, agentId: string, more: number): void {
  const agent = draft.get("agents", agentId);
  if (agent === undefined || more === 0) return;
  draft.change("agents", agentId, { queueSize: agent.queueSize + more, unreadMail: agent.unreadMail + more });
}

/** People and programs have no step. */
function lockWaitKey(wait: { stepId: string | null; waitId?: string; waiter: string; name: string }): string {
  return wait.stepId ?? wait.waitId ?? `${wait.waiter}\n${wait.name}`;
}

function answered(draft: Draft, roomId: string, taskId: string): void {
  const answering = new Map(draft.get("rooms", roomId)?.answering);
  if (answering.delete(taskId)) draft.change("rooms", roomId, { answering });
}

function closed(draft: Draft, questionId: string): void {
  draft.delete("questions", questionId);
  endWait(draft, questionId);
}

function decided(draft: Draft, approvalId: string): void {
  draft.delete("approvals", approvalId);
  endWait(draft, approvalId);
}
