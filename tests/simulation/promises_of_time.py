"""The promises about time, whatever the wall clock is set to: what lasts for a while lasts just so long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import StepKind, TaskRecord

TASK_ENDS = {"async.task.completed", "async.task.error", "async.task.cancelled"}

Latest = Callable[[float, float], float]
"""When what is due at a time must have happened, in the life that goes on at another time."""

_LEASE_ENDS = ("lock.released", "lock.expired", "lock.broken")
_SLEEP_NOTES = ("agent.state_changed", "agent.sleep_changed")


def check_time(notes: Iterable[Notification], tasks: Mapping[str, TaskRecord], latest: Latest) -> None:
    """Raise `AssertionError` with the promise that was broken."""
    notes = list(notes)
    assert all(one.at <= other.at for one, other in pairwise(notes)), "something happened before its cause"
    _check_leases(notes, latest)
    _check_sleeps(notes, latest)
    _check_deadlines(notes, tasks, latest)


def due_times(notes: Iterable[Notification], key: str) -> dict[int, float]:
    """By number, what notifications say that is due when the wall clock shows it, by the session's time."""
    offset, found = 0, {}
    for note in notes:
        if note.name in ("clock.changed", "session.opened"):
            offset = note.params.get("clockOffsetSeconds", 0)
        if note.params.get(key) is not None:
            found[note.seq] = note.params[key] - offset
    return found


def _check_leases(notes: list[Notification], latest: Latest) -> None:
    due_at = due_times(notes, "expiresAt")
    held: dict[str, float] = {}
    for note in notes:
        assert all(note.at <= latest(due, note.at) for due in held.values()), "a lease outlived its time"
        if note.name in ("lock.acquired", "lock.renewed"):
            held[note.params["name"]] = due_at[note.seq]
        elif note.name in _LEASE_ENDS:
            due = held.pop(note.params["name"])
            assert note.name != "lock.expired" or note.at >= due, "a lease ran out before its time"


def _check_sleeps(notes: list[Notification], latest: Latest) -> None:
    due_at = due_times(notes, "sleepingUntil")
    asleep: dict[str, float] = {}
    for note in notes:
        assert all(note.at <= latest(due, note.at) for due in asleep.values()), "somebody slept longer than they wanted"
        if note.name not in _SLEEP_NOTES:
            continue
        due = asleep.pop(note.params["agentId"], None)
        is_early = due is not None and note.at < due and _is_by_time(note)
        assert not is_early, "somebody was woken before the time"
        is_counted = note.seq in due_at and not note.params.get("sleepingByWallClock")
        if is_counted and note.params["to"] == "sleeping":
            asleep[note.params["agentId"]] = due_at[note.seq]


def _is_by_time(note: Notification) -> bool:
    """Whether the agent was woken by its own timer, and not by a mail that followed from another, as a deadline."""
    return note.cause.startswith("timer:") and not note.params.get("reason", "").startswith("mail ")


def _check_deadlines(notes: list[Notification], tasks: Mapping[str, TaskRecord], latest: Latest) -> None:
    began: dict[str, float] = {}
    asked = _times_of_asking(notes, tasks)
    for note in notes:
        task = tasks.get(note.params.get("taskId", ""))
        if task is None or task.deadline_at is None:
            continue
        if note.name in ("async.task.queued", "async.task.started"):
            began[task.id] = note.at
        elif note.name in {*TASK_ENDS, "async.task.continuation"}:
            due_at = max(task.deadline_at, began.get(task.id, task.created_at))
            if task.may_join:  # a message that a model is being told may yet be answered
                due_at = max([due_at, *(end for start, end in asked[task.thread_id] if start <= due_at <= end)])
            assert note.at <= latest(due_at, note.at), "a task outlived its deadline"


def _times_of_asking(
    notes: list[Notification], tasks: Mapping[str, TaskRecord]
) -> Mapping[str, Sequence[tuple[float, float]]]:
    """From when to when models were asked, by thread."""
    began: dict[str, float] = {}
    times: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for note in notes:
        if note.name not in ("step.started", "step.finished") or note.params["kind"] != StepKind.MODEL:
            continue
        if note.name == "step.started":
            began.setdefault(note.params["stepId"], note.at)
        else:
            since = began.pop(note.params["stepId"], note.at)
            times[tasks[note.params["taskId"]].thread_id].append((since, note.at))
    return times
