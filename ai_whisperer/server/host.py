"""The sessions of a server: whose they are, which of them are open, and how they end."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence

from msgspec.structs import asdict

from ai_whisperer.clock import SystemClock, TimedIds
from ai_whisperer.coordination import SessionRecord, SessionSummary
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.text import check_text
from ai_whisperer.errors import (
    ClosedError,
    DuplicateIdError,
    StoreFailedError,
    UnknownSessionError,
    WhispererError,
)
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.models.catalog import resolve
from ai_whisperer.runtime.manager import AnyFunction, AsyncAgentSessionManager
from ai_whisperer.server.agent_logs import AgentLogs
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.templates.library import TemplateLibrary

LOCAL = "local"
"""The principal of the token that the server makes or is given on the command line."""

_log = logging.getLogger(__name__)
_NAMED_IN_ERRORS = 20
_chance = random.SystemRandom()


class SessionHost:
    """Holds the sessions of one store. One is opened when it has something to do, or when somebody asks for it."""

    def __init__(
        self,
        store: Store,
        *,
        model: str,
        templates: TemplateLibrary,
        tools: Iterable[AnyFunction] = (),
        model_factory: ModelFactory = resolve,
        logs: AgentLogs | None = None,
    ) -> None:
        self.model = model
        self.templates = templates
        self._store = store
        self._tools = tuple(tools)
        self._model_factory = model_factory
        self._logs = logs
        self._clock = SystemClock()
        self._open: dict[str, _OpenSession] = {}
        self._deleting: set[str] = set()
        self._closing = False
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def start(self, *, session_id: str) -> None:
        """Take up the sessions that have something to do; the session of that id is made if it is not there.

        Sessions that were made without a server belong to the local principal from now on.
        """
        unit = Unit()
        for unlisted in self._store.unlisted_sessions():
            unit.put_session(self._new(LOCAL, unlisted))
        if unit:
            await self._store.submit(unit)
        if self._store.session(session_id) is None:
            await self.create(LOCAL, session_id)
        for busy in self._store.sessions_with_work():
            await self._opened(busy)

    async def close(self, *, grace_seconds: float) -> None:
        """Let the steps under way finish for so long; when this returns, all sessions are on disk and closed."""
        self._closing = True
        opened, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close(grace_seconds=grace_seconds) for each in opened))

    async def create(self, principal: str, session_id: str | None = None, *, title: str = "") -> SessionSummary:
        """Make a session that belongs to the principal."""
        self._check_open()
        if title:
            check_text("title", title, max_bytes=1000)
        if session_id is None:
            session_id = TimedIds(self._clock, _chance).new()
        checked_id(session_id)
        if session_id in self._deleting or self._store.session(session_id) is not None:
            raise DuplicateIdError(f"There is a session '{session_id}' already. Choose another id, or none.")
        record = self._new(principal, session_id, title=title)
        unit = Unit()
        unit.put_session(record)
        await self._store.submit(unit)
        return SessionSummary(**asdict(record))

    def list(self, principal: str, *, limit: int) -> list[SessionSummary]:
        """The principal's sessions, the newest first."""
        return self._store.sessions(principal, limit=limit)

    def get(self, principal: str, session_id: str) -> SessionRecord:
        """The session, if it is the principal's; raises `UnknownSessionError` that names those that are."""
        record = self._store.session(session_id) if session_id not in self._deleting else None
        if record is None or record.owner != principal:
            raise self._unknown(principal, session_id)
        return record

    async def session(self, principal: str, session_id: str) -> AsyncAgentSessionManager:
        """The open session of the principal; raises `UnknownSessionError`."""
        self._check_open()
        known = self._open.get(session_id)
        if known is not None and known.owner == principal and known.manager.failure is None:
            return known.manager
        self.get(principal, session_id)
        return await self._opened(session_id)

    async def delete(self, principal: str, session_id: str) -> SessionSummary:
        """Close the session and delete everything in it."""
        record = self.get(principal, session_id)
        (agents,) = [each.agents for each in self._store.sessions(principal, limit=1 << 31) if each.id == session_id]
        self._deleting.add(session_id)
        try:
            known = self._open.pop(session_id, None)
            if known is not None:
                await known.close(grace_seconds=0)
            unit = Unit()
            unit.delete_session(session_id)
            await self._store.submit(unit)
        finally:
            self._deleting.discard(session_id)
        return SessionSummary(**asdict(record), agents=agents)

    @property
    def open_sessions(self) -> Sequence[AsyncAgentSessionManager]:
        return [each.manager for each in self._open.values()]

    async def _opened(self, session_id: str) -> AsyncAgentSessionManager:
        known = self._open.pop(session_id, None)
        if known is not None:
            if known.manager.failure is None:
                self._open[session_id] = known
                return known.manager
            await known.close(grace_seconds=0)
        record = self._store.session(session_id)
        manager = AsyncAgentSessionManager(
            session_id=session_id,
            store=self._store,
            model=self.model,
            model_factory=self._model_factory,
            templates=self.templates,
            tools=self._tools,
        )
        await manager.open()
        self._open[session_id] = _OpenSession(manager, self, owner=record.owner if record else LOCAL, logs=self._logs)
        return manager

    def session_failed(self, failure: BaseException) -> None:
        """A session stopped: if the store as a whole has failed, so has the server."""
        if isinstance(failure, StoreFailedError) and not self.failed.done():
            self.failed.set_result(failure)

    def _new(self, principal: str, session_id: str, *, title: str = "") -> SessionRecord:
        return SessionRecord(id=session_id, title=title, owner=principal, created_at=self._clock.now())

    def _check_open(self) -> None:
        if self._closing:
            raise ClosedError("The server is shutting down. Try again when it is back.")

    def _unknown(self, principal: str, session_id: str) -> UnknownSessionError:
        some = self._store.sessions(principal, limit=_NAMED_IN_ERRORS + 1)
        names = ", ".join(f"'{each.id}'" for each in some[:_NAMED_IN_ERRORS]) or "none"
        more = " and more" if len(some) > _NAMED_IN_ERRORS else ""
        return UnknownSessionError(
            f"There is no session {session_id[:200]!r}. Sessions: {names}{more}. Make one with session.create."
        )


class _OpenSession:
    """An open session, and the task that writes its log."""

    def __init__(
        self, manager: AsyncAgentSessionManager, host: SessionHost, *, owner: str, logs: AgentLogs | None
    ) -> None:
        self.manager = manager
        self.owner = owner
        self._host = host
        self._logs = logs
        self._logging = asyncio.create_task(self._write_log(), name=f"log of {manager.session_id}")

    async def close(self, *, grace_seconds: float) -> None:
        try:
            await self.manager.close(grace_seconds=grace_seconds)
        except WhispererError as error:
            _log.error("session %s could not be closed in peace: %s", self.manager.session_id, error)
        await self._logging

    async def _write_log(self) -> None:
        """Pass on what happens until the session is closed."""
        try:
            async for note in self.manager.subscribe():
                if self._logs is not None:
                    self._logs.write([note])
        except WhispererError as failure:
            _log.error("session %s has stopped: %s", self.manager.session_id, failure)
            self._host.session_failed(failure)
