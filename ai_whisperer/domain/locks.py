"""Locks with leases, and who waits for them."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


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
