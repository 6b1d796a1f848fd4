"""What loops wait for: answers, locks, approvals, questions to a person, their turn at a resource."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.record import Record


class WaitKind(StrEnum):
    """What a tool call waits for: the reply to a mail, a lock, a person's approval, a person's answer, its turn."""

    REPLY = "reply"
    LOCK = "lock"
    APPROVAL = "approval"
    QUESTION = "question"
    RESOURCE = "resource"


class Touch(Record, frozen=True, kw_only=True):
    """A resource that a tool call touches, such as `file:shared/report.md`, and how. Readers share, writers do not."""

    resource: str
    access: Access


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


class ResourceUse(Record, frozen=True, kw_only=True):
    """A tool call that touches a resource since then, or waits for it since then."""

    agent_id: str
    task_id: str
    step_id: str
    access: Access
    since: float


class ResourceStatus(Record, frozen=True, kw_only=True):
    """A resource that is touched now: who holds it, and who waits for it, in the order in which they came."""

    resource: str
    holders: tuple[ResourceUse, ...]
    waiting: tuple[ResourceUse, ...]
