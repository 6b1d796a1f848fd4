"""Notifications about locks: who has them, and who waits for them."""

from __future__ import annotations

from typing import Self

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.notifications.base import Told, notification


class OfLock(Told, frozen=True, kw_only=True):
    """`agent_id` and `task_id` are None if it is about a person or program."""

    name: str
    agent_id: str | None
    task_id: str | None


class OfLockWait(OfLock, frozen=True, kw_only=True):
    """`wait_id` tells the waits of people and programs apart, which have no step."""

    who = "{@waiter}"
    waiter: str
    step_id: str | None
    wait_id: str | UnsetType = UNSET


@notification("lock.waiting", "waits for the lock {name}, which {@holder} holds")
class LockWaiting(OfLockWait, frozen=True, kw_only=True):
    """Somebody waits for a lock."""

    holder: str
    deadline_at: float


@notification("lock.wait_ended", "no longer waits for the lock {name}: {outcome:words}", watched=False)
class LockWaitEnded(OfLockWait, frozen=True, kw_only=True):
    """Somebody no longer waits for a lock."""

    outcome: str


class LockTold(OfLock, frozen=True, kw_only=True):
    who = "{@holder}"

    holder: str
    token: int


class LockHeld(LockTold, frozen=True, kw_only=True):
    expires_at: float

    @classmethod
    def of(cls, lock: LockRecord) -> Self:
        """`lock` has its times as the wall clock shows them."""
        return cls(
            name=lock.name,
            agent_id=lock.agent_id,
            task_id=lock.task_id,
            holder=lock.holder or "",
            token=lock.token,
            expires_at=lock.expires_at or 0.0,
        )


class LockGone(LockTold, frozen=True, kw_only=True):
    @classmethod
    def of(cls, lock: LockRecord) -> Self:
        return cls(
            name=lock.name,
            agent_id=lock.agent_id,
            task_id=lock.task_id,
            holder=lock.holder or "",
            token=lock.token,
        )


@notification("lock.acquired", "has the lock {name} until {expiresAt:time}", watched=False)
class LockAcquired(LockHeld, frozen=True, kw_only=True):
    """Somebody has a lock."""


@notification("lock.renewed", "keeps the lock {name} until {expiresAt:time}", watched=False)
class LockRenewed(LockHeld, frozen=True, kw_only=True):
    """Somebody has a lock for longer."""


@notification("lock.released", "released the lock {name}", watched=False)
class LockReleased(LockGone, frozen=True, kw_only=True):
    """A lock was released, or its holder ended."""


@notification("lock.expired", "lost the lock {name} because its lease ran out")
class LockExpired(LockGone, frozen=True, kw_only=True):
    """The lease of a lock ran out."""


@notification("lock.broken", "broke the lock {name}, which {@holder} held[: {reason}]")
class LockBroken(LockTold, frozen=True, kw_only=True):
    """A person took a lock from whoever had it."""

    who = "{@by}"
    by: str
    reason: str

    @classmethod
    def of(cls, lock: LockRecord, *, by: str, reason: str) -> Self:
        return cls(
            name=lock.name,
            agent_id=lock.agent_id,
            task_id=lock.task_id,
            holder=lock.holder or "",
            token=lock.token,
            by=by,
            reason=reason,
        )
