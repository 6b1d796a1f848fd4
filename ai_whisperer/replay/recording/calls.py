"""Which call an entry of the log tells of, and with which arguments: a reader for each notification that can lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ai_whisperer.core.causal_paths import is_drawn
from ai_whisperer.core.tasks import parent_of
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import RecordingError
from ai_whisperer.replay.recording.rows import Rows

Found = tuple[str, dict[str, Any]]
"""A call and its arguments."""


class Group:
    """The entries of one call, or of several that were made at the same moment."""

    def __init__(self, notes: Sequence[Notification], *, offset: int = 0) -> None:
        """`offset` is how far the wall clock was ahead of the time of the log."""
        self.notes = notes
        self.offset = offset
        self._told = {(note.name, note.params.get("agentId")) for note in notes}
        self._names = {note.name for note in notes}

    def has(self, *names: str) -> bool:
        """Whether one of these is told."""
        return not self._names.isdisjoint(names)

    def tells(self, name: str, agent_id: str) -> bool:
        """Whether this is told of the agent."""
        return (name, agent_id) in self._told


class Told(NamedTuple):
    """An entry, with the group that it stands in and the rows that it tells of."""

    rows: Rows
    note: Notification
    group: Group


_Reader = Callable[[Told], Found | None]


def own_id(given: str) -> str | None:
    """An id that the caller chose; None for one that was drawn."""
    return None if is_drawn(given) else given


def _created(told: Told) -> Found:
    agent_id = told.note.params["agentId"]
    if agent_id not in told.rows.agents:
        raise RecordingError(
            f"Agent '{agent_id}' is in the log of session '{told.rows.session_id}' and not among its agents. What it "
            "was is not kept, so the session cannot be recorded."
        )
    return "create_agent", {"agent_id": agent_id, "auto_start": told.group.tells("agent.started", agent_id)}


def _started(told: Told) -> Found:
    agent_id = told.note.params["agentId"]
    return "start_agent", {
        "agent_id": agent_id,
        "redefined": True if told.group.tells("agent.redefined", agent_id) else None,
    }


def _agent_call(call: str, *, reason: bool) -> _Reader:
    def read(told: Told) -> Found | None:
        if told.group.has("limits.changed"):
            return None  # an agent that waited for it goes on
        why = {"reason": told.note.params["reason"]} if reason and told.note.params.get("reason") else {}
        return call, {"agent_id": told.note.params["agentId"], **why}

    return read


def _paused(told: Told) -> Found:
    cut = any(
        each.name == "step.interrupted"
        and each.params["agentId"] == told.note.params["agentId"]
        and 0 <= each.at - told.note.at < 1
        for each in told.rows.log[told.note.seq : told.note.seq + 50]
    )
    return "interrupt_agent" if cut else "pause_agent", {
        "agent_id": told.note.params["agentId"],
        "reason": told.note.params.get("reason") or None,
    }


def _slept(told: Told) -> Found | None:
    params, action = told.note.params, told.note.params["action"]
    if action == "sleep":
        until = params.get("sleepingUntil")
        by_wall = params.get("sleepingByWallClock")
        return "sleep_agent", {
            "agent_id": params["agentId"],
            "duration_seconds": None
            if until is None or by_wall
            else round(until - told.group.offset - told.note.at, 6),
            "until": until if by_wall else None,
            "wake_events": params.get("wakeEvents") or None,
            "reason": params.get("reason") or None,
        }
    if action != "wake" or told.group.has("mail.sent", "event.broadcast", "agent.resumed", "limits.changed"):
        return None
    if not told.group.tells("async.task.queued", params["agentId"]):
        return None
    return "wake_agent", {"agent_id": params["agentId"], "reason": params.get("reason") or None}


def _queued(told: Told) -> Found | None:
    params = told.note.params
    task = told.rows.tasks.get(params["taskId"])
    if "again" in params:
        return "retry_task", {"task": params["taskId"]}
    if params["kind"] == "compaction":
        return "compact_context", {"agent_id": params["agentId"], "thread_id": params["threadId"]}
    if params["kind"] != "user_prompt":
        return None
    if task is None or task.erased_at is not None:
        raise RecordingError(
            f"The task that entry {told.note.seq} of the log tells of was erased, so the session cannot be recorded. "
            f"Record what came before: --to {told.note.seq - 1}."
        )
    origin = task.origin
    return "send_task", {
        "agent_id": task.agent_id,
        "prompt": task.prompt,
        "priority": None if task.priority == "normal" else str(task.priority),
        "thread_id": None if task.thread_id == task.id else task.thread_id,
        "task_id": own_id(task.id),
        "timeout_seconds": None if task.deadline_at is None else round(task.deadline_at - task.created_at, 6),
        "budget": None if task.budget is None else msgspec.to_builtins(task.budget),
        "output": None if origin is None else origin.output_schema,
        "deliver": "next_step" if origin is not None and origin.next_step else None,
    }


def _of_task(call: str, *, reason: bool = False) -> _Reader:
    def read(told: Told) -> Found:
        why = {"reason": told.note.params["reason"]} if reason else {}
        return call, {"task": told.note.params["taskId"], **why}

    return read


def _mailed(told: Told) -> Found | None:
    if told.note.params["sender"] != USER:
        return None
    mail = told.rows.mails[told.note.params["mailId"]]
    if mail.erased_at is not None:
        raise RecordingError(
            f"The mail of entry {told.note.seq} was erased. Record what came before: --to {told.note.seq - 1}."
        )
    priority = None if mail.priority == "normal" else str(mail.priority)
    if mail.reply_to is not None:
        reply = {"mail_id": mail.reply_to, "body": mail.body, "priority": priority, "reply_id": own_id(mail.id)}
        return "reply_mail", reply
    return "send_mail", {
        "to": mail.recipient,
        "subject": mail.subject,
        "body": mail.body,
        "priority": priority,
        "thread_id": None if mail.thread_id == mail.id else mail.thread_id,
        "mail_id": own_id(mail.id),
    }


def _marked(told: Told) -> Found | None:
    if told.note.params["agentId"] != USER:
        return _withdrawn(told)
    if told.group.has("mail.sent", "async.task.dismissed", "async.task.queued"):
        return None
    return "mark_mail", {"mail_id": told.note.params["mailId"], "state": told.note.params["state"]}


def _withdrawn(told: Told) -> Found | None:
    """Mails that nobody has begun to handle are archived when the tree that they are of is cancelled."""
    params = told.note.params
    if (params["from"], params["state"]) != ("queued", "archived") or told.group.has("agent.stopped"):
        return None
    parent = parent_of(told.rows.mails[params["mailId"]].cause)
    return None if parent is None else ("cancel_tree", {"task": parent})


def _broadcast(told: Told) -> Found | None:
    params = told.note.params
    if params["sender"] != USER:
        return None
    return "broadcast_event", {"event": params["event"], "data": params["data"], "event_id": own_id(params["eventId"])}


def _room(told: Told) -> Found:
    params = told.note.params
    if params["kind"] == "direct":
        return "open_chat", {"agent_id": params["members"][0]}
    made = {"members": params["members"], "title": params["title"], "hop_limit": params["hopLimit"]}
    return "create_room", {**made, "room_id": own_id(params["roomId"])}


def _member(call: str) -> _Reader:
    return lambda told: (call, {"room": told.note.params["roomId"], "agent_id": told.note.params["agentId"]})


def _posted(told: Told) -> Found | None:
    params = told.note.params
    if params["sender"] != USER:
        return None
    message = told.rows.messages.get(params["messageId"])
    asked = () if message is None else message.asked.values()
    origins = [task.origin for task_id in asked if (task := told.rows.tasks.get(task_id)) is not None]
    joins = any(origin is not None and origin.next_step for origin in origins)
    return "post_message", {
        "room": params["roomId"],
        "text": params["text"],
        "message_id": own_id(params["messageId"]),
        "deliver": "next_step" if joins else None,
    }


def _scheduled(told: Told) -> Found | None:
    params = told.note.params
    if params["agentId"] and told.group.tells("agent.redefined", params["agentId"]):
        return None
    renamed = {"agent_id": "agentId", "interval_seconds": "intervalSeconds"}
    names = ("cron", "zone", "prompt", "event", "data", "missed", "wake")
    found = {name: params.get(renamed.get(name, name)) for name in (*renamed, *names)}
    return "create_schedule", {**found, "schedule_id": own_id(params["scheduleId"])}


def _rescheduled(told: Told) -> Found | None:
    if told.note.params.get("reason"):
        return None
    return "pause_schedule" if told.note.params["paused"] else "resume_schedule", {
        "schedule": told.note.params["scheduleId"]
    }


def _unscheduled(told: Told) -> Found | None:
    agent_id = told.note.params["agentId"]
    if agent_id and told.group.tells("agent.redefined", agent_id):
        return None
    return "delete_schedule", {"schedule": told.note.params["scheduleId"]}


def _locked(told: Told) -> Found | None:
    params = told.note.params
    if params["taskId"] is not None or told.group.has("lock.released", "lock.broken"):
        return None
    found = {"name": params["name"], "holder": None if params["holder"] == USER else params["holder"]}
    return "acquire_lock", {**found, "ttl_seconds": round(params["expiresAt"] - told.note.at, 6)}


def _awaited(told: Told) -> Found | None:
    params = told.note.params
    if "waitId" not in params:
        return None
    found = {"name": params["name"], "holder": None if params["waiter"] == USER else params["waiter"]}
    return "acquire_lock", {**found, "wait_seconds": round(params["deadlineAt"] - told.note.at, 6)}


def _lock(call: str) -> _Reader:
    def read(told: Told) -> Found | None:
        params = told.note.params
        if params["taskId"] is not None and call != "break_lock":
            return None
        if call == "renew_lock":
            seconds = round(params["expiresAt"] - told.note.at, 6)
            return call, {"name": params["name"], "token": params["token"], "ttl_seconds": seconds}
        if call == "break_lock":
            return call, {"name": params["name"], "reason": params["reason"]}
        return call, {"name": params["name"], "token": params["token"]}

    return read


def _approval(call: str) -> _Reader:
    def read(told: Told) -> Found:
        params = told.note.params
        return call, {"approval_id": params["approvalId"], "reason": params["reason"] or None, **_decided_by(params)}

    return read


def _decided_by(params: Mapping[str, Any]) -> dict[str, Any]:
    """Who decided, if that was somebody with a name of their own, as people at a server are."""
    return {} if params["decidedBy"] == USER else {"by": params["decidedBy"]}


def _answered(told: Told) -> Found:
    question = told.rows.questions[told.note.params["questionId"]]
    return "answer_question", {
        "question_id": question.id,
        "answer": question.answer,
        **_decided_by(told.note.params),
    }


def _unanswered(told: Told) -> Found:
    return "refuse_question", {
        "question_id": told.note.params["questionId"],
        "reason": told.note.params["reason"] or None,
        **_decided_by(told.note.params),
    }


def _limited(told: Told) -> Found:
    params = told.note.params
    if params["scope"] == "server":
        return "take_server_limits", {"limits": params["limits"]}
    return "set_limits", {"limits": params["limits"], "agent_id": params["agentId"]}


READERS: Mapping[str, _Reader] = {
    "agent.created": _created,
    "agent.started": _started,
    "agent.paused": _paused,
    "agent.resumed": _agent_call("resume_agent", reason=False),
    "agent.stopped": _agent_call("stop_agent", reason=True),
    "agent.state_changed": _slept,
    "agent.sleep_changed": _slept,
    "async.task.queued": _queued,
    "async.task.cancelled": _of_task("cancel_task", reason=True),
    "async.task.dismissed": _of_task("dismiss_task"),
    "mail.sent": _mailed,
    "mail.state_changed": _marked,
    "event.broadcast": _broadcast,
    "room.created": _room,
    "room.member_added": _member("add_member"),
    "room.member_removed": _member("remove_member"),
    "room.message": _posted,
    "schedule.created": _scheduled,
    "schedule.changed": _rescheduled,
    "schedule.deleted": _unscheduled,
    "lock.acquired": _locked,
    "lock.waiting": _awaited,
    "lock.renewed": _lock("renew_lock"),
    "lock.released": _lock("release_lock"),
    "lock.broken": _lock("break_lock"),
    "approval.approved": _approval("approve"),
    "approval.refused": _approval("refuse"),
    "question.answered": _answered,
    "question.refused": _unanswered,
    "limits.changed": _limited,
}
