"""Tasks, their steps, and how they end."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.compactions import Compaction
from ai_whisperer.domain.conversation import Answer, ChannelResponse, ToolCall, ToolResult, Usage
from ai_whisperer.domain.record import Record

SWITCH_SUFFIX = "~switch"
"""Ends the name of a thread in which an agent answers others that wait."""


class Priority(StrEnum):
    """What is taken first: `urgent`, then `high`, `normal`, `low`."""

    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    @property
    def rank(self) -> int:
        return RANKS[self]


RANKS = {priority: rank for rank, priority in enumerate(Priority)}


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
    COMPACTION = "compaction"


class Deliver(StrEnum):
    """When a message to a conversation is heard: in its turn, or before the next step of the task at work there."""

    IN_TURN = "in_turn"
    NEXT_STEP = "next_step"


class TaskState(StrEnum):
    """`continued`: the answer asked for more, in another task. `dead`: a dead letter, which waits for a person.

    `joined`: its prompt went into the task that was at work in its conversation, whose answer is for both.
    """

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    CONTINUED = "continued"
    JOINED = "joined"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"

    @property
    def ended(self) -> bool:
        return self not in _NOT_ENDED

    @property
    def is_passed_on(self) -> bool:
        """Whether another task has it now: what becomes of it is what becomes of that one."""
        return self in _PASSED_ON

    @property
    def is_dead_letter(self) -> bool:
        """Whether it could not be done: it waits for a person to retry or dismiss it."""
        return self in _DEAD_LETTERS


_NOT_ENDED = (TaskState.QUEUED, TaskState.RUNNING)
_PASSED_ON = (TaskState.CONTINUED, TaskState.JOINED)
_DEAD_LETTERS = (TaskState.FAILED, TaskState.DEAD)


class StepKind(StrEnum):
    """A model request, a tool call, or that the conversation is made shorter."""

    MODEL = "model"
    TOOL = "tool"
    COMPACTION = "compaction"


class StepState(StrEnum):
    """`unknown`: it was cut off, and may have had its effect."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


MODEL: Final = StepKind.MODEL
TOOL: Final = StepKind.TOOL
COMPACTION: Final = StepKind.COMPACTION
COMPACTION_TASK: Final = TaskKind.COMPACTION
STARTED: Final = StepState.STARTED
DONE: Final = StepState.DONE
"""What loops compare with at every step: in Python 3.11 a member of an enum takes as long to look up as a call does."""


class Failure(Record, frozen=True, kw_only=True):
    """Why a task ended badly: the stable code and the message of an error."""

    code: str
    message: str


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

    `answers` is the awaited mail that a task, or the one that it continues, is to answer. `output_schema` is the JSON
    Schema that the answer of the task has to fit; what the task causes does not inherit it. A `quiet` one was made by
    the runtime, to tell somebody of a result or of a failure: nobody is told if it cannot be handled. One for the
    `next_step` joins the task at work in its thread, if there is one. A task that `continues_cut` continues within an
    answer which stopped at its greatest length: there is no line break between, nor a blank.
    """

    root_id: str | None = None
    deadline_at: float | None = None
    budget: Budget | None = None
    report_to: ReportTo | None = None
    room: RoomTurn | None = None
    answers: str | None = None
    output_schema: dict[str, Any] | None = None
    quiet: bool = False
    next_step: bool = False
    continues_cut: bool = False


class TaskRecord(Record, frozen=True, kw_only=True):
    """One unit of work. A task that opens a thread lends it its id: `thread_id == id`.

    `arrival` is the place in the session's order of arrivals. `attempts` counts the starts, and is written before the
    run, so that a task that kills the process cannot do so for ever; a task that proves harmless is counted from zero.
    `restarts` counts the times its loop crashed; it does not begin again before `not_before`, nor does one at whose
    start the process died again and again. `dismissed_at` is when a person dismissed the dead letter. `notes` is what
    the agent was told of its memory at the beginning of the task, `parts` are the images and files given with it.
    `joined_step` is the step of another task before which its prompt was said, if it has joined that. Of a task with
    `erased_at` only the standing is kept: that it was given and how it ended, without prompt, answer and steps.
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
    notes: str | None = None
    parts: tuple[Attachment, ...] | None = None
    joined_step: str | None = None
    erased_at: float | None = None

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
    def may_join(self) -> bool:
        """Whether it goes into the task at work in its thread rather than wait for its turn, as it has not begun."""
        return self.origin is not None and self.origin.next_step and self.started_at is None

    @property
    def continues_cut(self) -> bool:
        """Whether it continues within an answer that was cut, maybe within a word."""
        return self.origin is not None and self.origin.continues_cut

    @property
    def deadline_at(self) -> float | None:
        return None if self.origin is None else self.origin.deadline_at

    @property
    def budget(self) -> Budget | None:
        return None if self.origin is None else self.origin.budget

    @property
    def output_schema(self) -> dict[str, Any] | None:
        return None if self.origin is None else self.origin.output_schema


class Said(Record, frozen=True, kw_only=True):
    """What was said to a task at work before one of its steps: the prompt of the task that waited in its thread."""

    task_id: str
    text: str
    parts: tuple[Attachment, ...] = ()


class StepRecord(Record, frozen=True, kw_only=True):
    """One model request, tool call or compaction of a task: the unit of the journal.

    A model request that turns out to be too long becomes a `compaction` under its number, and the request is the next
    step. The summary, if a model is asked for one, is its `answer`.

    `attempt` counts the starts, `failures` those attempts that failed by themselves, outages of the provider apart. A
    failed attempt leaves its error and the time of the next one in `error` and `retry_at`; the step is repeated under
    the same id.

    `requests` counts the model requests that were made and ended, by an answer, by a failure or cut off, and
    `request_seconds` is how long these took together, without the waits before and between them. A step that is taken
    up again keeps them. `outage_seconds` is how long the step was held up because its provider was down or could not
    be reached, or let others in and not this one: the requests that failed so, and the waits after them. `said` are
    messages to the task at work that its model is shown with this request for the first time.

    `model` is which one is asked by the last attempt, if the agent has several.
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
    compaction: Compaction | None = None
    model: str = ""
    said: tuple[Said, ...] | None = None

    @property
    def id(self) -> str:
        return f"{self.task_id}.{self.number}"


def step_id(task_id: str, number: int) -> str:
    """The id of the step of that number, whether it has begun or not."""
    return f"{task_id}.{number}"


def step_number(step_id: str) -> int:
    """The number of the step in its task."""
    return int(step_id.rpartition(".")[2])


class ThreadSummary(Record, frozen=True, kw_only=True):
    """A conversation of one agent, as the tasks in it tell."""

    id: str
    tasks: int
    first_at: float
    last_at: float

    @property
    def thread_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class Retried(StrEnum):
    """What was begun again: a model request that failed, a loop that crashed, a task by a person."""

    REQUEST = "request"
    LOOP = "loop"
    TASK = "task"


class Repaired(StrEnum):
    """What was repaired of tool calls that a model did not write as it should: calls as text, names, arguments."""

    TEXT = "text"
    NAME = "name"
    ARGUMENTS = "arguments"


class WorkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of the work of a session since it was opened, and what waits for a person now.

    `ended` counts tasks by the state that they ended in, `retried` what was begun again, `repaired` tool calls.
    """

    ended: dict[TaskState, int]
    retried: dict[Retried, int]
    repaired: dict[Repaired, int]
    dead_tasks: int
    dead_mails: int
    pending_approvals: int
    pending_questions: int


class RetriedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """What came of retrying all failed tasks: how many were queued again, and why others were not, by task id."""

    retried: int
    not_retried: int
    task_ids: tuple[str, ...]
    reasons: dict[str, str]
