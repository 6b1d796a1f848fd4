import type { Draft } from "./draft";
import type { Changes } from "./reduce";
import { type LinkKind, linkKey } from "./world";

export const USER = "user";

/** Mail, waits, rooms, locks, approvals and schedules. */
export const CHANGES: Changes = {
  "mail.sent": (draft, { at, params }) => {
    link(draft, params.sender, params.recipient, "mail", at);
    if (params.recipient !== USER) return;
    const { mailId, threadId, sender, subject, priority } = params;
    draft.set("inbox", mailId, { mailId, threadId, sender, subject, priority, isRead: false, at });
  },
  "mail.state_changed": (draft, { params: { mailId, state } }) => {
    if (state === "archived" || state === "dead") draft.delete("inbox", mailId);
    else if (state === "read" || state === "replied") draft.change("inbox", mailId, { isRead: true });
    if (state === "dead") draft.deadMails += 1;
  },
  "room.created": (draft, { at, params }) => {
    draft.set("rooms", params.roomId, { ...params, lastNumber: 0, lastAt: at, answering: new Map() });
  },
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
  "room.unanswered": (draft, { params }) => answered(draft, params.roomId, params.taskId),
  "switch.began": (draft, { at, params }) => {
    const { agentId, taskId, stepId, toAgent, deadlineAt } = params;
    link(draft, agentId, toAgent, "switch", at);
    const common = { agentId, taskId, waiter: agentId, since: at, deadlineAt };
    draft.set("waits", stepId, { kind: "reply", target: toAgent, holders: [toAgent], ...common });
  },
  "switch.ended": (draft, { params }) => draft.delete("waits", params.stepId),
  "lock.waiting": (draft, { at, params }) => {
    const { name, agentId, taskId, waiter, holder, deadlineAt } = params;
    const key = params.stepId ?? `${waiter}\n${name}`;
    draft.set("waits", key, {
      kind: "lock",
      agentId,
      taskId,
      waiter,
      target: name,
      holders: [holder],
      since: at,
      deadlineAt,
    });
  },
  "lock.wait_ended": (draft, { params }) => draft.delete("waits", params.stepId ?? `${params.waiter}\n${params.name}`),
  "lock.acquired": (draft, { at, params }) => draft.set("locks", params.name, { ...params, acquiredAt: at }),
  "lock.renewed": (draft, { params: { name, expiresAt } }) => draft.change("locks", name, { expiresAt }),
  "lock.released": (draft, { params }) => draft.delete("locks", params.name),
  "lock.expired": (draft, { params }) => draft.delete("locks", params.name),
  "lock.broken": (draft, { params }) => draft.delete("locks", params.name),
  "approval.requested": (draft, { at, params }) => {
    const { agentId, taskId, approvalId } = params;
    draft.set("approvals", approvalId, { ...params, at });
    const wait = { agentId, taskId, waiter: agentId, target: approvalId, holders: [], since: at, deadlineAt: null };
    draft.set("waits", approvalId, { kind: "approval", ...wait });
  },
  "approval.approved": (draft, { params }) => decided(draft, params.approvalId),
  "approval.refused": (draft, { params }) => decided(draft, params.approvalId),
  "approval.withdrawn": (draft, { params }) => decided(draft, params.approvalId),
  "resource.waiting": (draft, { at, params: { agentId, taskId, stepId, resources, holders } }) => {
    const wait = { agentId, taskId, waiter: agentId, holders, since: at, deadlineAt: null };
    draft.set("waits", stepId, { kind: "resource", target: resources.join(", "), ...wait });
  },
  "resource.granted": (draft, { params }) => draft.delete("waits", params.stepId),
  "schedule.created": (draft, { params: { data: _data, missed: _missed, ...params } }) => {
    draft.set("schedules", params.scheduleId, { ...params, paused: false, lastAt: null, fired: 0 });
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

function link(draft: Draft, from: string, to: string, kind: LinkKind, at: number): void {
  const key = linkKey({ from, to, kind });
  draft.set("links", key, { from, to, kind, count: (draft.get("links", key)?.count ?? 0) + 1, lastAt: at });
}

function answered(draft: Draft, roomId: string, taskId: string): void {
  const answering = new Map(draft.get("rooms", roomId)?.answering);
  if (answering.delete(taskId)) draft.change("rooms", roomId, { answering });
}

function decided(draft: Draft, approvalId: string): void {
  draft.delete("approvals", approvalId);
  draft.delete("waits", approvalId);
}
