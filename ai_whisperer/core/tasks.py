"""What becomes a task: a wake-up, an event, a due schedule, a delegation, an answer that asks for more.

A mail does too: see `core.mailbox`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.marks import as_json, named, quoted, said, without_marks
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.domain.tasks import Deliver, Origin, Priority, TaskKind, TaskRecord
from ai_whisperer.errors import InvalidInputError, TaskEndedError

_DELEGATED = "~task"
_GO_ON = (
    "Continue your answer exactly where it was cut off, within the word if it was there. Begin with the next "
    "character, also if that is a blank or a line break, and repeat nothing."
)
_MAX_EVENT_DATA_CHARACTERS = 100_000
_SUMMARY_CHARACTERS = 200
_BEGINNING_CHARACTERS = 2 * _SUMMARY_CHARACTERS
"""Marks take a part of it: the longest name of an agent and some more."""


_DELIVERIES = {each.value: each for each in Deliver}


def base_id(task: TaskRecord) -> str:
    """The id of the task that this one continues in the end: its own, unless it is a continuation."""
    return task.id.rpartition("~")[0] if task.continuation else task.id


def continuation_id(task: TaskRecord) -> str:
    """The id of the task that continues this one, so that it can be found from it."""
    return f"{base_id(task)}~{task.continuation + 1}"


def delivery_of(given: Deliver | str) -> Deliver:
    """When a message is to be heard; raises `InvalidInputError` with what there is to choose from."""
    found = _DELIVERIES.get(given.replace("-", "_")) if isinstance(given, str) else None
    if found is not None:
        return found
    raise InvalidInputError(f"deliver must be one of {', '.join(Deliver)}, not {given!r:.60}.")


def host_of(task: TaskRecord) -> str | None:
    """The id of the task that this one has joined, if it has."""
    return None if task.joined_step is None else task.joined_step.rpartition(".")[0]


def delegated_id(step_id: str) -> str:
    """The id of the task that this call delegates. Callers cannot give ids with this sign, so that no two meet."""
    return f"{step_id}{_DELEGATED}"


def is_delegated(name: str) -> bool:
    """Whether this is the id of a task that an agent has delegated, or of one that continues such a task."""
    return _DELEGATED in name


def is_part_of(base_id: str, task_id: str) -> bool:
    """Whether it is the task of that id, or one that continues it."""
    return task_id == base_id or task_id.startswith(f"{base_id}~")


def summary_of(task: TaskRecord) -> str:
    """The beginning of what a task is about."""
    return without_marks(task.prompt[:_BEGINNING_CHARACTERS])[:_SUMMARY_CHARACTERS]


def check_answered(task: TaskRecord) -> ChannelResponse:
    """The answer of a task that has ended; raises `TaskEndedError` if it ended without one."""
    check_not_erased(task)
    if task.result is None:
        why = task.error.message if task.error else "no reason was recorded"
        raise TaskEndedError(f"Task {task.id} ended as {task.state}: {why}")
    return task.result


def check_not_erased(task: TaskRecord) -> None:
    """Raise `TaskEndedError` if only the standing of the task is kept."""
    if task.erased_at is not None:
        raise TaskEndedError(f"{erased_in_words(task)} It ended as {task.state}. It was not done again.")


def erased_in_words(task: TaskRecord) -> str:
    """Since when a task that was erased has no content, in a sentence."""
    erased_on = moment(task.erased_at)
    return f"The content of task {task.id} was erased on {erased_on}; its answer is not there any longer."


def whole_answer(parts: Sequence[TaskRecord]) -> str:
    """The final answer of a task and of those that went on with it; what has to fit a schema is in the last one."""
    if parts and parts[-1].output_schema is not None:
        parts = parts[-1:]
    return joined_final((part.result.final, part.continues_cut) for part in parts if part.result is not None)


def joined_final(parts: Iterable[tuple[str, bool]]) -> str:
    """What the user reads of the parts of an answer: each with whether it goes on where the one before was cut.

    Such a part follows as it is, maybe within a word; any other begins a line.
    """
    whole, goes_on = "", True
    for text, continues_cut in parts:
        goes_on = goes_on and continues_cut
        if text:
            whole = whole + text if goes_on else f"{whole.rstrip()}\n{text.lstrip()}"
            goes_on = True
    return whole.strip()


def joined(parts: Sequence[TaskRecord]) -> TaskRecord:
    """The last of these tasks, each of which went on with the one before, with the answer of them all."""
    last, results = parts[-1], [part.result for part in parts if part.result is not None]
    if last.result is None or len(results) == 1:
        return last
    whole = ChannelResponse(
        analysis="\n".join(filter(None, (each.analysis for each in results))),
        commentary="\n".join(filter(None, (each.commentary for each in results))),
        final=whole_answer(parts),
        output=last.result.output,
    )
    return replace(last, result=whole)


def inherited(task: TaskRecord) -> Origin:
    """Where that which the task causes comes from: it belongs to the same tree and keeps its terms."""
    return Origin(root_id=task.root_id, deadline_at=task.deadline_at, budget=task.budget)


def branch_of(tree: Iterable[TaskRecord], task_id: str) -> dict[str, TaskRecord]:
    """The task and everything below it in its tree, by id."""
    children: dict[str | None, list[TaskRecord]] = {}
    found: dict[str, TaskRecord] = {}
    for task in tree:
        children.setdefault(task.parent_id, []).append(task)
        if task.id == task_id:
            found[task_id] = task
    below = deque(found)
    while below:
        for child in children.get(below.popleft(), ()):
            if child.id not in found:
                found[child.id] = child
                below.append(child.id)
    return found


def continuation_of(task: TaskRecord, *, now: float, cut: bool) -> TaskRecord:
    """The task that goes on with this one, or with its cut answer: in its thread, in its place, on its terms."""
    return TaskRecord(
        session_id=task.session_id,
        id=continuation_id(task),
        agent_id=task.agent_id,
        thread_id=task.thread_id,
        kind=TaskKind.CONTINUATION,
        prompt=_GO_ON if cut else "Continue where you stopped.",
        arrival=task.arrival,
        cause=f"task:{task.id}",
        priority=task.priority,
        parent_id=task.id,
        continuation=task.continuation + 1,
        created_at=now,
        origin=replace(task.origin or Origin(), root_id=task.root_id, next_step=False, continues_cut=cut),
    )


def wake_up(
    agent: AgentRecord,
    reason: str,
    *,
    task_id: str,
    arrival: int,
    cause: str,
    parent_id: str | None,
    now: float,
    origin: Origin | None = None,
) -> TaskRecord:
    """The task that tells an agent why it was woken."""
    return TaskRecord(
        session_id=agent.session_id,
        id=task_id,
        agent_id=agent.id,
        thread_id=task_id,
        kind=TaskKind.WAKE,
        prompt=f"You were asleep and have been woken. Reason: {reason}",
        arrival=arrival,
        cause=cause,
        parent_id=parent_id,
        created_at=now,
        origin=origin,
    )


def task_for_event(
    event: EventRecord, agent_id: str, *, task_id: str, arrival: int, origin: Origin | None
) -> TaskRecord:
    """The task that an event is for an agent which subscribes to it."""
    return TaskRecord(
        session_id=event.session_id,
        id=task_id,
        agent_id=agent_id,
        thread_id=task_id,
        kind=TaskKind.EVENT,
        prompt=f"You subscribe to this event. {described(event)}",
        arrival=arrival,
        cause=f"event:{event.id}",
        parent_id=parent_of(event.cause),
        created_at=event.created_at,
        origin=origin,
    )


def delegated(
    by: TaskRecord,
    to: str,
    prompt: str,
    *,
    task_id: str,
    arrival: int,
    priority: Priority,
    origin: Origin,
    now: float,
) -> TaskRecord:
    """The task that one agent gives to another."""
    heading = f"{by.agent_id} delegates this task to you; your answer is sent back to it."
    return TaskRecord(
        session_id=by.session_id,
        id=task_id,
        agent_id=to,
        thread_id=task_id,
        kind=TaskKind.DELEGATED,
        prompt=f"{heading}\n\n{said(by.agent_id, prompt)}",
        arrival=arrival,
        cause=f"task:{by.id}",
        priority=priority,
        parent_id=by.id,
        created_at=now,
        origin=origin,
    )


def described(event: EventRecord) -> str:
    """The event in words, for a model."""
    text = f"Event {quoted(event.name)} was broadcast by {named(event.sender)}."
    return text if event.data is None else f"{text} Data: {said(event.sender, _as_json(event.data))}"


def _as_json(value: Any) -> str:
    text = as_json(value)
    return text if len(text) <= _MAX_EVENT_DATA_CHARACTERS else text[:_MAX_EVENT_DATA_CHARACTERS] + "…"


def parent_of(cause: str) -> str | None:
    """The task that is this cause; None if it is something else."""
    kind, _, cause_id = cause.partition(":")
    return cause_id if kind == "task" else None


def scheduled(schedule: ScheduleRecord, *, task_id: str, arrival: int, cause: str, now: float) -> TaskRecord:
    """The task that a schedule with a prompt fires."""
    return TaskRecord(
        session_id=schedule.session_id,
        id=task_id,
        agent_id=schedule.agent_id or "",
        thread_id=task_id,
        kind=TaskKind.SCHEDULED,
        prompt=schedule.definition.prompt or "",
        arrival=arrival,
        cause=cause,
        created_at=now,
    )
