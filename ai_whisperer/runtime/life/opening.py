"""The life of an open session: taken up from the store, closed cleanly, or stopped when the store fails."""

from __future__ import annotations

import asyncio
import logging

from msgspec.structs import replace

from ai_whisperer.domain.forks import Effects
from ai_whisperer.errors import ClosedError
from ai_whisperer.runtime.agents.deletion import erase_marked
from ai_whisperer.runtime.life import recovery
from ai_whisperer.runtime.life.assembly import Outside, assemble
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.waiting.recalling import recorded_calls_of
from ai_whisperer.store.base import SERVER, Store

_log = logging.getLogger(__name__)


async def open_session(session_id: str, store: Store, outside: Outside) -> OpenSession:
    """Bring the session into memory and go on where it was; raises a `StoreError` if it cannot be read."""
    failures: list[BaseException] = []
    store.listen(session_id, lambda *_: None, failures.append)  # first: it is open once, and nobody else writes to it
    try:
        snapshot = await store.load(session_id)
        stated = StatedLimits(
            setting=outside.limits, server=await store.limits(SERVER), session=await store.limits(session_id)
        )
        recorded = None
        if snapshot.fork is not None and snapshot.fork.effects is Effects.RECORDED:
            recorded, store = await recorded_calls_of(snapshot.fork, store)
        session = assemble(session_id, store, snapshot, stated, outside, recorded=recorded)
        past = await recovery.read_past(session, snapshot)
    finally:
        store.unlisten(session_id)
    if failures:
        raise failures[0]
    session.kernel.on_refused = lambda failure: fail_session(session, failure)
    store.listen(session_id, session.kernel.log.publish, session.kernel.on_refused)
    recovery.restore(session, snapshot, past, outside.stage.agent_tools)
    if snapshot.was_cut_off:
        _count_no_crash(session)
    session.schedules.restore(snapshot.schedules)
    recovery.resume(session, snapshot)
    session.schedules.arm_all()
    if snapshot.has_marks:
        session.kernel.background.run(_erase(session), name=f"erasing in {session_id}")
    return session


async def _erase(session: OpenSession) -> None:
    """Go on with what was being erased when the process ended."""
    await erase_marked(session)


async def close_session(session: OpenSession, *, grace_seconds: float) -> None:
    """Let the steps under way finish for so long and cancel what is left. When this returns all of it is on disk."""
    session.kernel.closing = True
    session.locks.close(ClosedError("The session was closed before the lock was free. Ask again when it is back."))
    session.kernel.timers.close()
    loops = list(session.roster.running.values())
    for loop in loops:
        loop.interrupt_wait()
    workers = [worker for loop in loops if (worker := loop.worker) is not None]
    try:
        if workers:
            await asyncio.wait(workers, timeout=grace_seconds)
        agents = session.roster.agents.values()
        await asyncio.gather(*(agent.work.halt_loops() for agent in agents if agent.work.loops))
        if session.kernel.log.failure is None:
            _count_no_crash(session)  # before all that can hang: whoever is killed in that has harmed no task
        await session.kernel.background.close()
        await session.supplies.mcp.close()
        freeing = (agent.free() for agent in agents if agent.toolkit.has_models)
        for outcome in await asyncio.gather(*freeing, return_exceptions=True):
            if isinstance(outcome, Exception):
                _log.warning("a model client could not be closed: %r", outcome)
        await session.kernel.store.flushed()
        await session.supplies.folders.close()
    finally:
        session.trial_turn.give_back(session)
        session.gates.close()
        session.kernel.store.unlisten(session.kernel.session_id)
        session.kernel.release_waiters(
            ClosedError("The session was closed before the task ended; the task resumes later.")
        )
        if not session.kernel.log.closed:
            session.kernel.log.close()


def _count_no_crash(session: OpenSession) -> None:
    """A task that stopped, or stops now, does so by no fault of its own: it is no longer counted as begun."""
    decision = session.kernel.decide("shutdown")
    for loop in session.roster.running.values():
        if loop.running.held_back:
            loop.running.let_go(decision)
        elif loop.task.attempts:
            loop.running.journal.update_task(decision, replace(loop.task, attempts=0))
    if decision.unit:
        decision.submit()


def fail_session(session: OpenSession, failure: BaseException) -> None:
    """The store has failed, or refused what memory already holds: nothing more may happen that it does not know of."""
    session.kernel.closing = True
    session.kernel.timers.close()
    session.trial_turn.give_back(session)
    session.gates.close()
    for loop in session.roster.running.values():
        loop.abandon()
    session.locks.close(failure)
    session.kernel.release_waiters(failure)
    session.kernel.log.close(failure)
