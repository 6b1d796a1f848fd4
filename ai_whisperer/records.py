"""The words of the domain as frozen records.

A record mirrors a row of the store and is changed by copy (`msgspec.structs.replace`). Times are seconds since the
epoch, UTC, by the session's clock (`runtime.session_clock`). Ids are text; a step's id is its task's id and its number,
so that a repeated step carries the same id.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from ai_whisperer.base_record import Record
from ai_whisperer.conversation import Answer, ChannelResponse, ToolCall, ToolResult, Usage
from ai_whisperer.definition import AgentDefinition

USER = "user"
"""The address of the person: sender of what the API sends, recipient of what agents mail to people."""


SWITCH_SUFFIX = "~switch"
"""Ends the name of a thread in which an agent answers others that wait."""


class AgentState(StrEnum):
    """`idle`: has nothing to do. `active`: at least one of its tasks runs."""

    IDLE = "idle"
    ACTIVE = "active"
    PAUSED = "paused"
    SLEEPING = "sleeping"
    STOPPED = "stopped"


class Priority(StrEnum):
    """What is taken first: `urgent`, then `high`, `normal`, `low`."""

    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {priority: rank for rank, priority in enumerate(Priority)}


class TaskKind(StrEnum):
    """What a task came from."""

    PROMPT = "user_prompt"
    MAIL = "mailbox_message"
    CONTINUATION = "continuation"
    WAKE = "wake_up"
    EVENT = "event"
    SCHEDULED = "scheduled"
    DELEGATED = "delegated_task"
    ROOM = "room_message"


class TaskState(StrEnum):
    """`continued`: the answer asked for more, in another task. `dead`: a dead letter, which waits for a person."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    CONTINUED = "continued"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"

    @property
    def ended(self) -> bool:
        return self not in (TaskState.QUEUED, TaskState.RUNNING)

    @property
    def is_dead_letter(self) -> bool:
        """Whether it could not be done: it waits for a person to retry or dismiss it."""
        return self in (TaskState.FAILED, TaskState.DEAD)


class MailState(StrEnum):
    """How far a mail has come. `dead`: a dead letter, which waits for a person."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    READ = "read"
    REPLIED = "replied"
    ARCHIVED = "archived"
    DEAD = "dead"


class StepKind(StrEnum):
    """A model request or a tool call."""

    MODEL = "model"
    TOOL = "tool"


class StepState(StrEnum):
    """`unknown`: it was cut off, and may have had its effect."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


class TimerKind(StrEnum):
    """`wake`: due by the session's time. `wake_at`: due when the wall clock shows it. `start`: a stop is over."""

    WAKE = "wake"
    TRIAL = "trial"
    WAKE_AT = "wake_at"
    START = "start"


class Failure(Record, frozen=True, kw_only=True):
    """Why a task ended badly: the stable code and the message of an error."""

    code: str
    message: str


class SleepPlan(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Until when and for what an agent sleeps, and why: a pause has a reason of its own meanwhile.

    `until` is a time of the session, at which a duration is over, or, `by_wall_clock`, what the wall clock has to show.
    """

    until: float | None = None
    wake_events: tuple[str, ...] = ()
    reason: str = ""
    by_wall_clock: bool = False


class Budget(Record, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a task may use together with everything that it causes."""

    max_tokens: int | None = None
    max_cost_usd: float | None = None


class ReportTo(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Who is mailed the result of a delegated task, in which conversation, and until when that is of use."""

    agent_id: str
    thread_id: str
    deadline_at: float | None = None


class RoomTurn(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The message of a room that a task answers.

    `seen` is the message up to which the member had seen the room before: the task shows it those after it.
    """

    room_id: str
    number: int
    seen: int = 0
    hops: int = 0


class Origin(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Where a task or a mail comes from: the task at the root of its tree, and the terms that the tree inherits.

    `answers` is the awaited mail that a task, or the one that it continues, is to answer.
    """

    root_id: str | None = None
    deadline_at: float | None = None
    budget: Budget | None = None
    report_to: ReportTo | None = None
    room: RoomTurn | None = None
    answers: str | None = None


class AgentRecord(Record, frozen=True, kw_only=True):
    """A paused agent whose `paused_limit` is not None is paused for that limit, and resumes when it is raised.

    `own_tools` names the functions that were provided for it, and if it has all tools those of the session too.
    """

    session_id: str
    id: str
    definition: AgentDefinition
    state: AgentState = AgentState.IDLE
    started: bool = False
    sleep: SleepPlan | None = None
    reason: str = ""
    own_tools: tuple[str, ...] = ()
    created_at: float = 0.0
    started_at: float | None = None
    paused_limit: str | None = None


class TaskRecord(Record, frozen=True, kw_only=True):
    """One unit of work. A task that opens a thread lends it its id: `thread_id == id`.

    `arrival` is the place in the session's order of arrivals. `attempts` counts the starts, and is written before the
    run, so that a task that kills the process cannot do so for ever; a task that proves harmless is counted from zero.
    `restarts` counts the times its loop crashed; it does not begin again before `not_before`, nor does one at whose
    start the process died again and again. `dismissed_at` is when a person dismissed the dead letter.
    """

    session_id: str
    id: str
    agent_id: str
    thread_id: str
    kind: TaskKind
    prompt: str
    arrival: int
    cause: str
    priority: Priority = Priority.NORMAL
    state: TaskState = TaskState.QUEUED
    mail_id: str | None = None
    parent_id: str | None = None
    continuation: int = 0
    attempts: int = 0
    progress_percent: float | None = None
    progress_note: str = ""
    result: ChannelResponse | None = None
    error: Failure | None = None
    usage: Usage = Usage()
    created_at: float = 0.0
    started_at: float | None = None
    finished_at: float | None = None
    origin: Origin | None = None
    not_before: float | None = None
    restarts: int = 0
    dismissed_at: float | None = None

    @property
    def task_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

    @property
    def is_dead_letter(self) -> bool:
        """Whether it could not be done and waits for a person, who has not dismissed it."""
        return self.state.is_dead_letter and self.dismissed_at is None

    @property
    def root_id(self) -> str:
        """The task at the root of the tree that this one belongs to."""
        return self.id if self.origin is None or self.origin.root_id is None else self.origin.root_id

    @property
    def answers_a_switch(self) -> bool:
        """Whether somebody waits for this task, or did when it began: it runs beside the agent's other loops."""
        return self.origin is not None and self.origin.answers is not None

    @property
    def deadline_at(self) -> float | None:
        return None if self.origin is None else self.origin.deadline_at

    @property
    def budget(self) -> Budget | None:
        return None if self.origin is None else self.origin.budget


class StepRecord(Record, frozen=True, kw_only=True):
    """One model request or one tool call of a task: the unit of the journal.

    `attempt` counts the starts, `failures` those attempts that failed by themselves, outages of the provider apart. A
    failed attempt leaves its error and the time of the next one in `error` and `retry_at`; the step is repeated under
    the same id.

    `requests` counts the model requests that were made and ended, by an answer, by a failure or cut off, and
    `request_seconds` is how long these took together, without the waits before and between them. A step that is taken
    up again keeps them. `outage_seconds` is how long the step was held up because its provider was down or could not
    be reached: the requests that failed so, and the waits after them.
    """

    session_id: str
    task_id: str
    number: int
    kind: StepKind
    state: StepState
    attempt: int = 1
    failures: int = 0
    call: ToolCall | None = None
    answer: Answer | None = None
    result: ToolResult | None = None
    error: Failure | None = None
    retry_at: float | None = None
    started_at: float = 0.0
    finished_at: float | None = None
    requests: int = 0
    request_seconds: float = 0.0
    outage_seconds: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.task_id}.{self.number}"


def step_id(task_id: str, number: int) -> str:
    """The id of the step of that number, whether it has begun or not."""
    return f"{task_id}.{number}"


def step_number(step_id: str) -> int:
    """The number of the step in its task."""
    return int(step_id.rpartition(".")[2])


class MailRecord(Record, frozen=True, kw_only=True):
    """A durable message. `sequence` counts the mails of one sender; `task_id` is the task that handles it.

    An `awaited` mail is one whose sender waits for the answer, or did: its task's result is its reply.
    """

    session_id: str
    id: str
    thread_id: str
    sender: str
    sequence: int
    recipient: str
    subject: str
    body: str
    arrival: int
    cause: str
    priority: Priority = Priority.NORMAL
    reply_to: str | None = None
    state: MailState = MailState.QUEUED
    task_id: str | None = None
    created_at: float = 0.0
    read_at: float | None = None
    awaited: bool = False
    origin: Origin | None = None

    @property
    def mail_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

    @property
    def work_thread_id(self) -> str:
        """The thread of the task that handles the mail: an awaited one has a conversation of its own."""
        return f"{self.thread_id}{SWITCH_SUFFIX}" if self.awaited else self.thread_id


class TimerRecord(Record, frozen=True, kw_only=True):
    """Something that is due at a time."""

    session_id: str
    id: str
    agent_id: str
    kind: TimerKind
    due_at: float


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One entry of a session's numbered log. `seq` is 0 for what is not kept: the deltas of a stream."""

    seq: int
    session_id: str
    name: str
    cause: str
    at: float
    params: dict[str, Any]
