"""The records of sessions and of what agents do with each other and with time: waits, locks, events, rooms …"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ai_whisperer.base_record import Record
from ai_whisperer.definition import Access, ScheduleDefinition


class WaitKind(StrEnum):
    """What a tool call waits for: the reply to a mail, a lock, a person's approval, its turn to touch something."""

    REPLY = "reply"
    LOCK = "lock"
    APPROVAL = "approval"
    RESOURCE = "resource"


class Touch(Record, frozen=True, kw_only=True):
    """A resource that a tool call touches, such as `file:shared/report.md`, and how. Readers share, writers do not."""

    resource: str
    access: Access


class ApprovalState(StrEnum):
    """`withdrawn`: the task ended first. `expired`: it ended because its time was over."""

    PENDING = "pending"
    APPROVED = "approved"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class RoomKind(StrEnum):
    """`direct`: the user and one agent. `group`: the user and several."""

    DIRECT = "direct"
    GROUP = "group"


class SessionRecord(Record, frozen=True, kw_only=True):
    """A session that a server keeps. `owner` is the principal to whom it belongs."""

    id: str
    title: str
    owner: str
    created_at: float = 0.0

    @property
    def session_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class SessionSummary(SessionRecord, frozen=True, kw_only=True):
    """A session as it is listed, with the number of its agents."""

    agents: int = 0


class WaitRecord(Record, frozen=True, kw_only=True):
    """A tool call that waits: for the reply to a mail, a lock, a person or its turn. Its id is that of the step.

    `target` is the mail or the lock, `target_agent` whom the mail went to. `arrival` is its place in the order.
    """

    session_id: str
    id: str
    kind: WaitKind
    agent_id: str
    task_id: str
    target: str
    target_agent: str
    arrival: int
    deadline_at: float
    ttl_seconds: float | None = None
    created_at: float = 0.0


class ApprovalRecord(Record, frozen=True, kw_only=True):
    """A tool call that a person is asked about. Its id is that of the step.

    `arguments` are exactly those that the model wrote and that the call runs with; `digest` names the tool with them.
    """

    session_id: str
    id: str
    agent_id: str
    task_id: str
    tool: str
    arguments: str
    digest: str
    state: ApprovalState = ApprovalState.PENDING
    requested_at: float = 0.0
    decided_at: float | None = None
    decided_by: str | None = None
    reason: str = ""

    @property
    def approval_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class LockRecord(Record, frozen=True, kw_only=True):
    """A named lock. `token` rises with every holder; without a holder the lock is free.

    `holder` is the id of the agent whose task holds it, or what a person or program that holds it is called: then it
    has no task.
    """

    session_id: str
    name: str
    token: int
    agent_id: str | None = None
    task_id: str | None = None
    acquired_at: float | None = None
    expires_at: float | None = None
    holder: str | None = None


class LockWaiter(Record, frozen=True, kw_only=True):
    """Somebody who waits for a lock: a task of an agent, or a person or program, which has no task."""

    waiter: str
    agent_id: str | None
    task_id: str | None
    ttl_seconds: float
    deadline_at: float
    created_at: float


class LockSummary(LockRecord, frozen=True, kw_only=True):
    """A lock as it is listed, with those who wait for it, in the order in which they get it."""

    waiting: tuple[LockWaiter, ...] = ()


class LeaseEnding(StrEnum):
    """How a lease can end. One whose task ends is released."""

    RELEASED = "released"
    EXPIRED = "expired"
    BROKEN = "broken"


class LeaseEnd(Record, frozen=True, kw_only=True):
    """How a lease ended. `by` and `reason` are of the person who broke it."""

    name: str
    token: int
    holder: str
    task_id: str | None
    ending: LeaseEnding
    at: float
    by: str = ""
    reason: str = ""


class LockCheck(Record, frozen=True, kw_only=True):
    """Whether a token is the current one of a lock; who has the lock now; and what became of the token if it is known.

    `told` says the same in words.
    """

    name: str
    token: int
    is_current: bool
    lock: LockRecord | None
    ended: LeaseEnd | None
    told: str


class EventRecord(Record, frozen=True, kw_only=True):
    """A named signal that was broadcast. `woken` and `notified` count the agents it woke and gave a task."""

    session_id: str
    id: str
    name: str
    sender: str
    cause: str
    data: Any = None
    woken: int = 0
    notified: int = 0
    created_at: float = 0.0

    @property
    def event_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class ScheduleRecord(Record, frozen=True, kw_only=True):
    """A schedule and where it stands. `next_at` is the due instant that fires next; `last_at` the one that fired last.

    `agent_id` is the agent that a prompt goes to and that the schedule belongs to; None for an event of the session.
    """

    session_id: str
    id: str
    definition: ScheduleDefinition
    agent_id: str | None = None
    paused: bool = False
    next_at: float | None = None
    last_at: float | None = None
    fired: int = 0
    cause: str = ""
    created_at: float = 0.0

    @property
    def schedule_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class RoomRecord(Record, frozen=True, kw_only=True):
    """A chat of the user with one agent or several. `seen` is the last message that each member was shown."""

    session_id: str
    id: str
    kind: RoomKind
    title: str
    members: tuple[str, ...]
    hop_limit: int
    last_number: int = 0
    seen: Mapping[str, int] = {}
    created_at: float = 0.0

    @property
    def room_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id


class MessageRecord(Record, frozen=True, kw_only=True):
    """One message of a room. `task_id` is the task whose answer it is; `hops` counts the agents before it in a row.

    `mentions` are the members that it addresses by name; `asked` leads from those who were asked for an answer to the
    tasks in which they give it.
    """

    session_id: str
    id: str
    room_id: str
    number: int
    sender: str
    text: str
    mentions: tuple[str, ...] = ()
    asked: Mapping[str, str] = {}
    task_id: str | None = None
    hops: int = 0
    cause: str = ""
    created_at: float = 0.0

    @property
    def message_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id
