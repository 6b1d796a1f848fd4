"""Answers to `lock.*`."""

from __future__ import annotations

from ai_whisperer.domain.locks import LockCheck, LockRecord
from ai_whisperer.protocol import locks
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@answers(locks.ACQUIRE_LOCK)
async def acquire_lock(caller: Caller, params: locks.AcquireLock) -> LockRecord:
    session = await caller.session(params.session_id)
    return await session.acquire_lock(
        params.name, ttl_seconds=params.ttl_seconds, wait_seconds=params.wait_seconds, holder=params.holder
    )


@answers(locks.RENEW_LOCK)
async def renew_lock(caller: Caller, params: locks.RenewLock) -> LockRecord:
    session = await caller.session(params.session_id)
    return await session.renew_lock(params.name, params.token, params.ttl_seconds)


@answers(locks.RELEASE_LOCK)
async def release_lock(caller: Caller, params: locks.ReleaseLock) -> LockRecord:
    session = await caller.session(params.session_id)
    return await session.release_lock(params.name, params.token)


@answers(locks.BREAK_LOCK)
async def break_lock(caller: Caller, params: locks.BreakLock) -> LockRecord:
    session = await caller.session(params.session_id)
    return await session.break_lock(params.name, params.reason)


@reads(locks.LIST_LOCKS)
def list_locks(session: AsyncAgentSessionManager, _: locks.ListLocks) -> locks.LockList:
    return locks.LockList(session.list_locks())


@reads(locks.CHECK_LOCK)
def check_lock(session: AsyncAgentSessionManager, params: locks.CheckLock) -> LockCheck:
    return session.check_lock(params.name, params.token)
