"""The sessions that a server holds open: opened when they are asked for, closed when others are to have them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from ai_whisperer.cluster.membership import Membership
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.errors import ClosedError, NodeFencedError, SessionElsewhereError
from ai_whisperer.runtime.agents.folders import remove_work_of
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.collector import Leftovers
from ai_whisperer.server.held_session import HeldSession
from ai_whisperer.store.base import Store

_log = logging.getLogger(__name__)
_AT_REST = (AgentState.PAUSED, AgentState.STOPPED, AgentState.SLEEPING)


class HeldSessions:
    """The open sessions of one store. `membership` says which of all sessions can be opened here."""

    def __init__(
        self,
        store: Store,
        manager_of: Callable[..., AsyncAgentSessionManager],
        membership: Membership,
        *,
        work: Path | None,
    ) -> None:
        """`work` is the folder with the files of agents, if they have any."""
        self._store = store
        self._work = work
        self._manager_of = manager_of
        self.membership = membership
        self._limits = SessionLimits()
        self._open: dict[str, HeldSession] = {}
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._deleting: set[str] = set()
        self._leftovers = Leftovers()
        self._closing = False

    @property
    def is_closing(self) -> bool:
        return self._closing

    @property
    def has_far_store(self) -> bool:
        """See `Store.is_far`."""
        return self._store.is_far

    @property
    def open_sessions(self) -> Sequence[AsyncAgentSessionManager]:
        return [each.manager for each in self._open.values() if each.is_sound]

    def steps_under_way(self) -> Callable[[], Awaitable[list[StepRecord]]]:
        """A look at the steps of the tasks that run now, which can be taken until the store is closed."""
        running = [
            (session.session_id, task_id)
            for session in self.open_sessions
            for status in session.list_agents()
            for task_id in status.running_tasks
        ]

        async def look() -> list[StepRecord]:
            return [step for session_id, task_id in running for step in await self._store.steps(session_id, task_id)]

        return look

    def unfinished(self) -> dict[str, int]:
        """By agent, named with its session, how many tasks go on or wait for their turn in the open sessions."""
        return {
            f"{status.agent_id} (session {session.session_id})": count
            for session in self.open_sessions
            for status in session.list_agents()
            if status.state not in _AT_REST and (count := len(status.running_tasks) + status.queue_size)
        }

    async def let_go(self, session_id: str, *, grace_seconds: float) -> None:
        """Close a session, and let other nodes have it, unless it is being deleted."""
        if session_id in self._deleting or self._store.is_closed_off(session_id):
            return
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            known = self._open.get(session_id)
            if known is None:
                await self._store.release(session_id)
            else:
                await self._closed(session_id, known, grace_seconds=grace_seconds)

    @property
    def has_unsound(self) -> bool:
        return any(each.manager.failure is not None for each in self._open.values() if each.is_held)

    async def drop_unsound(self) -> None:
        """Forget the sessions that the store refused something because another node has them.

        One that is ours stays as it is until somebody asks for it: it would be refused again and again.
        """
        for session_id, known in list(self._open.items()):
            is_refused = known.is_held and known.manager.failure is not None
            if is_refused and not await self._store.is_ours(session_id):
                await self._closed(session_id, known, grace_seconds=0)

    async def remove_left_files(self) -> None:
        """Remove the files here of sessions that were deleted at other nodes, or that could not be removed before.

        Raises `StoreError` if it cannot ask which these are.
        """
        if self._work is None:
            return
        for session_id in await self.membership.deleted_elsewhere():
            async with self._opening.setdefault(session_id, asyncio.Lock()):  # nobody makes one of this id meanwhile
                try:
                    if not await self._store.claim(session_id):
                        continue  # somebody makes it anew here
                except SessionElsewhereError:
                    continue
                are_gone = True
                try:
                    if await self._store.session(session_id) is None and await self._has_no_log(session_id):
                        _log.info("the files of session %s are removed, which was deleted", session_id)
                        are_gone = await asyncio.to_thread(remove_work_of, self._work, session_id)
                finally:
                    await self._store.release(session_id, files_left=not are_gone)

    async def _has_no_log(self, session_id: str) -> bool:
        return not await self._store.notifications(session_id, after=0, limit=1)

    async def _closed(self, session_id: str, known: HeldSession, *, grace_seconds: float) -> None:
        await known.close(grace_seconds=grace_seconds)
        if self._open.get(session_id) is known:
            del self._open[session_id]
            self._leftovers.look_later()

    async def _opened(self, session_id: str, owner: str) -> AsyncAgentSessionManager:
        """Open a session that is not; of several who ask for it one opens it."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            known = self._open.get(session_id)
            if known is None:
                limits = self._limits
                known = HeldSession(await self._open_anew(session_id), owner=owner)
                self._open[session_id] = known
                if self._limits is not limits:  # set while it was being opened
                    await known.manager.take_server_limits(self._limits)
        return known.manager

    async def _open_anew(self, session_id: str) -> AsyncAgentSessionManager:
        manager = self._manager_of(session_id=session_id)
        await manager.open()
        if self._closing:
            await manager.close(grace_seconds=0)
            self._check_open()
        return manager

    async def take_limits(self, limits: SessionLimits) -> None:
        """Let the limits of the server be those that were set on another node."""
        if limits != self._limits:
            self._limits = limits
            await self._tell_limits()

    async def _tell_limits(self) -> None:
        told = (manager.take_server_limits(self._limits) for manager in self.open_sessions)
        for outcome in await asyncio.gather(*told, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome  # by now all others have been told

    async def _proven(self) -> None:
        """Nothing is told from memory by a node that may have been taken for dead: it asks first."""
        await self.membership.prove()
        if (failure := self._store.health.failure) is not None:
            raise failure
        if not self.membership.is_sure:
            raise NodeFencedError

    def _check_open(self) -> None:
        if self._closing:
            raise ClosedError("The server is shutting down. Try again when it is back.")
