"""Notifications about tasks: what is accepted, and what becomes of it."""

from __future__ import annotations

from typing import Any, Literal, Self

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.notifications.base import OfStep, OfTask, notification
from ai_whisperer.domain.tasks import Failure, Priority, TaskKind, TaskRecord, TaskState

ChannelName = Literal["analysis", "commentary", "final"]


class TaskBefore(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """How a task that is taken up again was before. `started_at` is None if it had never begun.

    `dismissed` is there if it was no longer a dead letter.
    """

    state: TaskState
    created_at: float
    started_at: float | None
    progress_percent: float | None
    progress_note: str
    dismissed: bool | UnsetType = UNSET

    @classmethod
    def of(cls, task: TaskRecord) -> Self:
        return cls(
            state=task.state,
            created_at=task.created_at,
            started_at=task.started_at,
            progress_percent=task.progress_percent,
            progress_note=task.progress_note,
            dismissed=UNSET if task.dismissed_at is None else True,
        )


@notification(
    "async.task.queued",
    "was given a task ({kind:words}[priority=normal?|, {priority} priority])[: {summary}]",
    watched=False,
)
class TaskQueued(OfTask, frozen=True, kw_only=True):
    """A task was accepted.

    `by` is who delegated it, or broadcast the event that it is for; `again` is there if it is taken up again.
    """

    thread_id: str
    kind: TaskKind
    priority: Priority
    summary: str
    mail_id: str | UnsetType = UNSET
    by: str | UnsetType = UNSET
    again: TaskBefore | UnsetType = UNSET

    @classmethod
    def of(
        cls, task: TaskRecord, *, summary: str, by: str | None = None, again: TaskBefore | UnsetType = UNSET
    ) -> Self:
        return cls(
            agent_id=task.agent_id,
            task_id=task.id,
            thread_id=task.thread_id,
            kind=task.kind,
            priority=task.priority,
            summary=summary,
            mail_id=UNSET if task.mail_id is None else task.mail_id,
            by=UNSET if by is None else by,
            again=again,
        )


@notification("async.task.started", "started a task ({kind:words}[attempt>1?, attempt {attempt}])")
class TaskStarted(OfTask, frozen=True, kw_only=True):
    """A task began to run.

    `priority` and `summary` are those of a mail, which is no task before it is begun.
    """

    thread_id: str
    kind: TaskKind
    attempt: int
    mail_id: str | None
    priority: Priority | UnsetType = UNSET
    summary: str | UnsetType = UNSET


@notification("async.task.progress", "reported progress[ of {percent:count} %][: {note}]")
class TaskProgress(OfTask, frozen=True, kw_only=True):
    """An agent reported its progress on a task."""

    percent: float | None
    note: str


class AnswerTold(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """An answer in its three channels; `output` is the value that it is, if its task has an output schema."""

    analysis: str
    commentary: str
    final: str
    output: Any | UnsetType = UNSET

    @classmethod
    def of(cls, response: ChannelResponse, *, typed: bool = False) -> Self:
        return cls(
            analysis=response.analysis,
            commentary=response.commentary,
            final=response.final,
            output=response.output if typed else UNSET,
        )


@notification("async.task.completed", "finished its task[: {result.final}]")
class TaskCompleted(OfTask, frozen=True, kw_only=True):
    """A task was completed; `result` has the channels."""

    result: AnswerTold


@notification(
    "async.task.continuation",
    "[cut?was cut at its greatest length|asked for more] and continues (continuation {number})",
    watched=False,
)
class TaskContinued(OfTask, frozen=True, kw_only=True):
    """A task asked for more, or its answer was `cut` at its greatest length, and it continues in another.

    The parts of a cut answer belong together as they are, blanks at their edges too; others are lines of their own.
    `locks` are those that the continuation holds in its place.
    """

    continuation_id: str
    number: int
    result: AnswerTold
    locks: list[str] | UnsetType = UNSET
    cut: bool | UnsetType = UNSET


@notification("async.task.joined", "took a message into its task", watched=False)
class TaskJoined(OfTask, frozen=True, kw_only=True):
    """A message went into the task at work in its conversation, before this step of it; the answer is for both."""

    step_id: str


@notification("async.task.error", "failed at its task[state=dead?, now a dead letter]: {error.message}", level="error")
class TaskFailed(OfTask, frozen=True, kw_only=True):
    """A task failed."""

    state: TaskState
    error: Failure


@notification("async.task.cancelled", "had a task cancelled[: {reason}]")
class TaskCancelled(OfTask, frozen=True, kw_only=True):
    """A task was cancelled."""

    reason: str


@notification("async.task.dismissed", "had its task {taskId} dismissed from the dead letters")
class TaskDismissed(OfTask, frozen=True, kw_only=True):
    """A person dismissed a dead letter."""


@notification("async.task.restarting", "crashed and begins again at {notBefore:time}: {error.message}", level="warning")
class TaskRestarting(OfTask, frozen=True, kw_only=True):
    """The loop of a task crashed and begins again later."""

    restarts: int
    not_before: float
    error: Failure


@notification("async.task.delta", "writes ({channel}): {text}", watched=False)
class TaskDelta(OfStep, frozen=True, kw_only=True):
    """A piece of an answer as it is streamed; not numbered, not kept.

    `offset` says how many characters of the attempt came before it. A model may close reasoning that it never opened
    (`</think>`): from then on `analysis_until` says that all before this offset, in whatever channel it was sent, is
    `analysis`. A viewer moves it there once.
    """

    attempt: int
    channel: ChannelName
    text: str
    skipped: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET
    analysis_until: int | UnsetType = UNSET
