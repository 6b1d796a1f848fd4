"""Locks, as a program or a person takes, keeps, gives back and breaks them."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec.structs import replace

from ai_whisperer.core.locking import check_lock, check_lock_name, check_token, checked_holder, checked_wait
from ai_whisperer.core.text import check_reason
from ai_whisperer.domain.locks import LockCheck, LockRecord, LockSummary
from ai_whisperer.domain.mail import USER
from ai_whisperer.runtime.api.tasks import SessionWork
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.waiting.lock_waits import ClientWait
from ai_whisperer.runtime.waiting.locks import Locks


class SessionLocks(SessionWork):
    """The part of the session manager that has locks. When a method returns, what it did is on disk."""

    def list_locks(self) -> list[LockSummary]:
        return self._session.locks.book.listed()

    async def acquire_lock(
        self, name: str, *, ttl_seconds: float = 60.0, wait_seconds: float = 0.0, holder: str | None = None
    ) -> LockRecord:
        session = self._session
        check_lock(name, ttl_seconds)
        checked_wait(wait_seconds)
        decision = session.kernel.decide(by_caller())
        got = session.locks.acquire_for(
            decision, checked_holder(holder), name=name, ttl_seconds=ttl_seconds, wait_seconds=wait_seconds
        )
        durable = decision.submit()
        try:
            if isinstance(got, ClientWait):
                return session.locks.book.shown(await got.given)
            await asyncio.shield(durable)
        except asyncio.CancelledError:
            _give_up(session, got)
            raise
        return session.locks.book.shown(got)

    async def renew_lock(self, name: str, token: int, ttl_seconds: float = 60.0) -> LockRecord:
        check_lock(name, ttl_seconds)
        check_token(token)
        locks = self._session.locks
        return locks.book.shown(
            await self._committed(lambda decision: locks.renew(decision, locks.book.of_token(name, token), ttl_seconds))
        )

    async def release_lock(self, name: str, token: int) -> LockRecord:
        check_lock_name(name)
        check_token(token)
        locks = self._session.locks
        return locks.book.shown(await locks.when_unused(name, partial(_release, token=token), cause=by_caller()))

    async def break_lock(self, name: str, reason: str = "") -> LockRecord:
        check_lock_name(name)
        check_reason(reason)
        locks = self._session.locks
        return locks.book.shown(await locks.when_unused(name, partial(_break, reason=reason), cause=by_caller()))

    def check_lock(self, name: str, token: int) -> LockCheck:
        check_lock_name(name)
        check_token(token)
        locks = self._session.locks
        check = locks.book.check(name, token)
        return check if check.lock is None else replace(check, lock=locks.book.shown(check.lock))


def _release(locks: Locks, decision: Decision, name: str, *, token: int) -> LockRecord:
    lock = locks.book.of_token(name, token)
    locks.release(decision, lock)
    return lock


def _break(locks: Locks, decision: Decision, name: str, *, reason: str) -> LockRecord:
    return locks.break_lock(decision, name, by=USER, reason=reason)


def _give_up(session: OpenSession, got: LockRecord | ClientWait) -> None:
    """Whoever asked has gone: it waits no more, and what it was given is free."""
    if session.kernel.log.failure is not None or session.kernel.log.closed:
        return
    decision = session.kernel.decide(by_caller())
    if isinstance(got, ClientWait):
        session.locks.client_gone(decision, got)
    else:
        session.locks.forsake(decision, got)
    if decision.unit:
        decision.submit()
