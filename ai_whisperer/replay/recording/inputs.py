"""What came from outside, read from the log: each call of a person or a program, with the arguments that it had.

The log tells what was decided, in groups: the entries of one call have one cause and one time. One entry of a group
leads, the others follow from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, takewhile
from typing import Any

import msgspec

from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import RecordingError
from ai_whisperer.replay.recording.calls import READERS, Group, Told
from ai_whisperer.replay.recording.rows import Rows

OPEN = "open"
"""An input that is no call: another process opened the session."""
CLOSE = "close"
"""The process before began to close it in order. Without this it was killed."""

_GONE = {
    "agent.deleted": "agent '{agentId}' was deleted",
    "thread.deleted": "a conversation of '{agentId}' was deleted",
    "room.deleted": "room {roomId} was deleted",
    "session.pruned": "the session was pruned",
}


class Lead(msgspec.Struct, frozen=True):
    """The first entry that tells of an input, and the call."""

    note: Notification
    call: str
    arguments: dict[str, Any]


def is_from_outside(cause: str) -> bool:
    """Whether a person or a program caused it."""
    return cause.partition(":")[0] in ("user", "request")


def leads_of(rows: Rows) -> Iterator[Lead]:
    """The inputs in the order of the log. Raises `RecordingError` for what cannot be recorded."""
    leads = list(_leads(rows))
    trees: dict[tuple[str, float], list[Lead]] = {}
    for lead in leads:
        if lead.call in _CANCELS:
            trees.setdefault((lead.note.cause, lead.note.at), []).append(lead)
    for lead in leads:
        if lead.call not in _CANCELS:
            yield lead
            continue
        together = trees[lead.note.cause, lead.note.at]
        root = _root_of([each.arguments["task"] for each in together], rows)
        if root is None or (len(together) == 1 and lead.call == "cancel_task"):
            yield lead
        elif together[0] is lead:
            given = {name: each for lead in together for name, each in lead.arguments.items() if name != "task"}
            yield Lead(lead.note, "cancel_tree", {"task": root, **given})


_CANCELS = ("cancel_task", "cancel_tree")


def _root_of(tasks: Sequence[str], rows: Rows) -> str | None:
    """The last of the tasks that caused all of these, or one of them that caused all others; None if there is none."""
    lines = [list(_ancestors(each, rows)) for each in tasks]
    return next((each for each in lines[0] if all(each in line for line in lines)), None)


def _ancestors(task_id: str, rows: Rows) -> Iterator[str]:
    """The task, and those that caused it, the last one first."""
    known: str | None = task_id
    while known is not None and known in rows.tasks:
        yield known
        known = rows.tasks[known].parent_id


def _leads(rows: Rows) -> Iterator[Lead]:
    closes = dict(_closes(rows.log))
    offset = 0
    for (cause, _), notes in groupby(rows.log, key=lambda note: (note.cause, note.at)):
        group = list(notes)
        for note in group:
            if note.name in _GONE:
                raise _gone(note)
            if note.seq in closes:
                yield Lead(note, CLOSE, {})
            if note.name == "session.opened":
                yield Lead(note, OPEN, {})
            if note.name in ("session.opened", "clock.changed"):
                offset = note.params.get("clockOffsetSeconds") or 0
        if is_from_outside(cause):
            yield from _leads_in(rows, Group(group, offset=offset))


def _closes(log: Sequence[Notification]) -> Iterator[tuple[int, int]]:
    """Before which entries a process began to close the session in order, and which entry tells of the next one.

    Tasks that a process is killed at have been started once more when they are taken up. One that closes the session
    begins nothing new, also of what waits, lets what is under way end for a while, and then cuts it off. If nothing has
    ended so, it counts as killed right after its last entry: what waits is not begun then either.
    """
    opened = [index for index, note in enumerate(log) if note.name == "session.opened"]
    for index in (*opened, len(log)):
        recovered = takewhile(lambda note: note.cause == "recovery", islice(log, index, None))
        if any(note.params["attempt"] > 1 for note in recovered if note.name == "async.task.started"):
            continue
        first = index
        while first and _may_be_of_end(log[first - 1]) and log[index - 1].at - log[first - 1].at < _GRACE_SECONDS:
            first -= 1
        if index < len(log):
            if first < index and not (first and _is_one_decision(log[first - 1], log[first])):
                yield log[first].seq, log[index].seq
        elif any(note.name == "step.finished" and _is_left_alone(note, log[first:]) for note in log[first:]):
            yield log[first].seq, log[-1].seq + 1


def _is_one_decision(one: Notification, next_one: Notification) -> bool:
    return (one.cause, one.at) == (next_one.cause, next_one.at)


def _is_left_alone(finished: Notification, rest: Sequence[Notification]) -> bool:
    """Whether nothing became of a task whose step has ended: a process that goes on decides both at once."""
    task_id = finished.params["taskId"]
    return not any(note.name.startswith("async.task.") and note.params.get("taskId") == task_id for note in rest)


def _may_be_of_end(note: Notification) -> bool:
    """Whether a process that closes the session may tell this: nothing begins, is asked for or falls due then."""
    return note.name in _ENDS and note.cause.partition(":")[0] not in ("user", "request", "timer", "recovery")


_ENDS = (
    "step.finished",
    "step.retried",
    "step.interrupted",
    "mail.state_changed",
    "mail.sent",
    "switch.ended",
    "lock.released",
    "limit.reached",
    "async.task.completed",
    "async.task.continuation",
    "async.task.queued",
    "async.task.error",
    "async.task.joined",
    "agent.state_changed",
)
_GRACE_SECONDS = 60.0


def _gone(note: Notification) -> RecordingError:
    what = _GONE[note.name].format_map(note.params)
    return RecordingError(
        f"This session cannot be recorded beyond entry {note.seq - 1} of its log: then {what}, and what that was is "
        f"not kept. Record what came before: --to {note.seq - 1}."
    )


def _leads_in(rows: Rows, group: Group) -> Iterator[Lead]:
    since = 0
    for index, note in enumerate(group.notes):
        agent_id = note.params.get("agentId") or ""
        if note.name in _OF_CREATION and group.tells("agent.created", agent_id):
            continue
        if note.name in _STOPPED_WITH and group.tells("agent.stopped", agent_id):
            continue
        reader = READERS.get(note.name)
        found = None if reader is None else reader(Told(rows, note, group))
        if found is not None:
            first = group.notes[since] if note.name in _LATE else note
            since = index + 1
            yield Lead(first, found[0], {name: each for name, each in found[1].items() if each is not None})


_LATE = ("event.broadcast", "agent.stopped", "agent.started", "limits.changed")
"""What is told after that which follows from it."""
_OF_CREATION = ("agent.started", "agent.state_changed", "schedule.created", "agent.redefined")
_STOPPED_WITH = ("async.task.cancelled", "agent.state_changed", "mail.state_changed", "agent.sleep_changed")
