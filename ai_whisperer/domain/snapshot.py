"""A whole session as it is at one moment: what its page shows. The log resumes from there."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.rooms import RoomKind
from ai_whisperer.domain.tasks import Priority, StepKind, TaskKind, TaskState
from ai_whisperer.domain.waits import WaitKind


class LinkKind(StrEnum):
    """How one reached another. A switch is a mail too."""

    MAIL = "mail"
    SWITCH = "switch"
    DELEGATION = "delegation"
    EVENT = "event"


class Link(Record, frozen=True, kw_only=True):
    """How often one agent, or the user, reached another in one way, and when last."""

    kind: LinkKind
    sender: str = msgspec.field(name="from")
    recipient: str = msgspec.field(name="to")
    count: int
    last_at: float


class OpenStep(Record, frozen=True, kw_only=True):
    """A model request or a tool call that has begun and has not ended.

    A request that failed and is to be repeated waits until `retry_at`, for the `retry_reason`.
    """

    step_id: str
    kind: StepKind
    tool: str | None
    started_at: float
    retry_at: float | None = None
    retry_reason: str = ""


class OpenTask(Record, frozen=True, kw_only=True):
    """A task that has not ended. `attempt` counts how often its loop was begun, since it crashed; 0 while it waits.

    `started_at` of one that waits is when it was begun before it was taken up again; `last_step_at` is when a step of
    it ended last since it was begun.
    """

    task_id: str
    agent_id: str
    thread_id: str
    kind: TaskKind
    priority: Priority
    summary: str
    state: TaskState
    attempt: int
    mail_id: str | None
    progress_percent: float | None
    progress_note: str
    queued_at: float
    started_at: float | None
    last_step_at: float | None
    steps: tuple[OpenStep, ...] = ()


class OpenWait(Record, frozen=True, kw_only=True):
    """Somebody who waits: a tool call, whose step is the `wait_id`, or a person or program at a lock.

    `targets` are the resources, of which there may be several, else just the `target`; `holders` those who have it.
    """

    wait_id: str
    kind: WaitKind
    agent_id: str | None
    task_id: str | None
    waiter: str
    target: str
    targets: tuple[str, ...]
    holders: tuple[str, ...]
    since: float
    deadline_at: float | None


class RoomState(Record, frozen=True, kw_only=True):
    """A room, and who is about to answer in it: agents by task."""

    room_id: str
    kind: RoomKind
    title: str
    members: tuple[str, ...]
    hop_limit: int
    last_number: int
    last_at: float
    answering: dict[str, str]


class InboxMail(Record, frozen=True, kw_only=True):
    """A mail of the user that is neither archived nor dead. `arrival` is its place in the session's order."""

    mail_id: str
    thread_id: str
    sender: str
    subject: str
    priority: Priority
    is_read: bool
    at: float
    arrival: int


class HeldLock(Record, frozen=True, kw_only=True):
    """A lock that somebody holds."""

    name: str
    holder: str
    agent_id: str | None
    task_id: str | None
    token: int
    acquired_at: float
    expires_at: float


class PendingApproval(Record, frozen=True, kw_only=True):
    """A tool call that waits for a person."""

    approval_id: str
    agent_id: str
    task_id: str
    tool: str
    digest: str
    at: float


class PendingQuestion(Record, frozen=True, kw_only=True):
    """What an agent asks a person, with the beginning of the question. Its wait, of the same id, has its deadline."""

    question_id: str
    agent_id: str
    task_id: str
    question: str
    at: float


class ScheduleState(Record, frozen=True, kw_only=True):
    """A schedule and where it stands."""

    schedule_id: str
    agent_id: str | None
    cron: str | None
    interval_seconds: float | None
    zone: str
    prompt: str | None
    event: str | None
    wake: bool
    paused: bool
    next_at: float | None
    last_at: float | None
    fired: int


class Snapshot(Record, frozen=True, kw_only=True):
    """A session right after the notification `last_seq`, which was at `at`: subscribe after it to resume from here.

    `waits` are in the order in which they began. `dead_tasks` and `dead_mails` count what waits for a person, failed
    tasks among them, dismissed ones not. `clock_offset_seconds` is how far the wall clock of the server is ahead of the
    session's: not 0 if it was set while something was counted. The log has notifications from `first_seq` on.
    """

    last_seq: int
    first_seq: int
    at: float
    clock_offset_seconds: int
    agents: tuple[AgentStatus, ...]
    tasks: tuple[OpenTask, ...]
    waits: tuple[OpenWait, ...]
    rooms: tuple[RoomState, ...]
    links: tuple[Link, ...]
    inbox: tuple[InboxMail, ...]
    locks: tuple[HeldLock, ...]
    approvals: tuple[PendingApproval, ...]
    questions: tuple[PendingQuestion, ...]
    schedules: tuple[ScheduleState, ...]
    dead_tasks: int
    dead_mails: int
