"""Locks, taken and given back from outside."""

from __future__ import annotations

from ai_whisperer.client.base import ClientBase
from ai_whisperer.core import locking
from ai_whisperer.core.text import check_reason
from ai_whisperer.domain.locks import LockCheck, LockRecord, LockSummary
from ai_whisperer.protocol import locks


class ClientLocks(ClientBase):
    """The locks of a session."""

    async def list_locks(self) -> list[LockSummary]:
        """The locks that are held, by whom, and who waits for them."""
        return (await self._ask(locks.LIST_LOCKS, locks.ListLocks(session_id=self._session_id))).locks

    async def acquire_lock(
        self, name: str, *, ttl_seconds: float = 60.0, wait_seconds: float = 0.0, holder: str | None = None
    ) -> LockRecord:
        """Take a lock for `ttl_seconds`, in the same order as the agents; its `token` renews and releases it.

        If it is held, wait for `wait_seconds` at most; raises `LockHeldError` if it is not free by then. `holder` is
        what others see of who has it, `user` by default. Whoever gives up waiting, by a cancellation for instance,
        has not got it. The lease lasts across restarts of the server, a wait does not.
        """
        locking.check_lock(name, ttl_seconds)
        params = locks.AcquireLock(
            session_id=self._session_id,
            name=name,
            ttl_seconds=ttl_seconds,
            wait_seconds=locking.checked_wait(wait_seconds),
            holder=None if holder is None else locking.checked_holder(holder),
        )
        if not wait_seconds:
            return await self._do(locks.ACQUIRE_LOCK, params)
        return await self._hub.do_apart(locks.ACQUIRE_LOCK, params)

    async def renew_lock(self, name: str, token: int, ttl_seconds: float = 60.0) -> LockRecord:
        """Let the lease last for `ttl_seconds` from now on; raises `LockNotHeldError` that says what became of it."""
        locking.check_lock(name, ttl_seconds)
        locking.check_token(token)
        params = locks.RenewLock(session_id=self._session_id, name=name, token=token, ttl_seconds=ttl_seconds)
        return await self._ask(locks.RENEW_LOCK, params)

    async def release_lock(self, name: str, token: int) -> LockRecord:
        """Give the lock back: the first that waits has it. Returns it as it was.

        Raises `LockNotHeldError` that says what became of it.
        """
        locking.check_lock_name(name)
        locking.check_token(token)
        params = locks.ReleaseLock(session_id=self._session_id, name=name, token=token)
        return await self._do(locks.RELEASE_LOCK, params)

    async def break_lock(self, name: str, reason: str = "") -> LockRecord:
        """Take the lock from whoever holds it: the first that waits has it. Returns it as it was.

        The old holder finds out when it uses its token: that fails, and says who broke the lock and why.
        """
        locking.check_lock_name(name)
        check_reason(reason)
        params = locks.BreakLock(session_id=self._session_id, name=name, reason=reason)
        return await self._do(locks.BREAK_LOCK, params)

    async def check_lock(self, name: str, token: int) -> LockCheck:
        """Whether this is the current token of the lock, and what became of it if not."""
        locking.check_lock_name(name)
        locking.check_token(token)
        params = locks.CheckLock(session_id=self._session_id, name=name, token=token)
        return await self._ask(locks.CHECK_LOCK, params)
