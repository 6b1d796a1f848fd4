"""The methods `lock.*`: leases that agents, people and programs take in turn."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.locks import LockCheck, LockRecord, LockSummary
from ai_whisperer.protocol.method import Effect, InSession, Method


class LockList(msgspec.Struct, frozen=True):
    """The locks that are held."""

    locks: list[LockSummary]


# Params of a method that acts on a lock.
class OfLock(InSession, frozen=True, kw_only=True):
    name: str


class AcquireLock(OfLock, frozen=True, kw_only=True):
    """Take a lock, and wait for it in the same order as the agents. Its token renews and releases it.

    The wait ends when the lock is had, after `waitSeconds`, and when the connection that asked is closed.
    """

    ttl_seconds: float = 60.0
    wait_seconds: float = 0.0
    holder: str | None = None


class RenewLock(OfLock, frozen=True, kw_only=True):
    """Let a lease last for `ttlSeconds` from now on."""

    token: int
    ttl_seconds: float = 60.0


class ReleaseLock(OfLock, frozen=True, kw_only=True):
    """Give a lock back: the first that waits has it. The answer is the lock as it was."""

    token: int


class BreakLock(OfLock, frozen=True, kw_only=True):
    """Take a lock from whoever holds it: the first that waits has it. The answer is the lock as it was."""

    reason: str = ""


class CheckLock(OfLock, frozen=True, kw_only=True):
    token: int


ACQUIRE_LOCK = Method("lock.acquire", AcquireLock, LockRecord, "acquire_lock")
RENEW_LOCK = Method("lock.renew", RenewLock, LockRecord, "renew_lock", Effect.REPEATS)
RELEASE_LOCK = Method("lock.release", ReleaseLock, LockRecord, "release_lock")
BREAK_LOCK = Method("lock.break", BreakLock, LockRecord, "break_lock")
LIST_LOCKS = Method("lock.list", InSession, LockList, "list_locks", Effect.READS)
CHECK_LOCK = Method("lock.check", CheckLock, LockCheck, "check_lock", Effect.READS)
