"""The sessions of a server: whose they are, which of them are open, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import asdict, replace

from ai_whisperer.choices import nearest
from ai_whisperer.cluster.membership import ALONE, Membership
from ai_whisperer.core.limits import Stated, changed, limits_from
from ai_whisperer.core.paging import can_be_id, checked_session_id
from ai_whisperer.core.tags import checked_needs
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.clock import TimedIds
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.retention import PruneReport
from ai_whisperer.domain.sessions import SessionRecord, SessionSummary
from ai_whisperer.errors import DuplicateIdError, SessionElsewhereError, UnknownSessionError
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.models.catalog import resolve
from ai_whisperer.runtime.agents.folders import remove_work_of
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.runtime.session.reads import Overlay, ReadsUnderWay
from ai_whisperer.sandbox.base import Sandbox
from ai_whisperer.sandbox.choosing import AUTO
from ai_whisperer.server.apart import Apart
from ai_whisperer.server.health import trouble_of
from ai_whisperer.server.held_sessions import HeldSessions
from ai_whisperer.settings import LOCAL
from ai_whisperer.store.archive import TransferReport
from ai_whisperer.store.base import SERVER, Store, Unit
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.function import AnyFunction, as_tools
from ai_whisperer.tools.toolbox import ToolBox

_log = logging.getLogger(__name__)
_NAMED_IN_ERRORS = 20
_chance = random.SystemRandom()


class SessionHost(HeldSessions):
    """Holds the sessions of one store. One is opened when it has something to do, or when somebody asks for it."""

    def __init__(
        self,
        store: Store,
        *,
        model: str,
        templates: TemplateLibrary,
        tools: Iterable[AnyFunction] | ToolBox = (),
        mcp_servers: Mapping[str, McpServerConfig] | None = None,
        limits: Stated = None,
        model_factory: ModelFactory = resolve,
        sandbox: str | Sandbox = AUTO,
        work: Path | None = None,
        folders: Mapping[str, Path] | None = None,
        hidden: Iterable[Path] = (),
        create_missing: bool = True,
        claude_folder: str | None = None,
        membership: Membership = ALONE,
    ) -> None:
        self.model = model
        self.templates = templates
        self.toolbox = tools if isinstance(tools, ToolBox) else ToolBox(as_tools(tools))
        self.mcp_servers = mcp_servers or {}
        self._sandbox = sandbox
        self._create_missing = create_missing
        self.claude_folder = claude_folder
        self._clock = membership.clock
        self.started_at = self._clock.now()
        manager_of = partial(
            AsyncAgentSessionManager,
            store=store,
            model=model,
            model_factory=model_factory,
            templates=templates,
            create_missing=create_missing,
            claude_folder=claude_folder,
            work=work,
            folders=dict(folders or {}),
            hidden=tuple(hidden),
            tools=self.toolbox.tools,
            mcp_servers=self.mcp_servers,
            sandbox=sandbox,
            limits=limits_from(limits, SessionLimits),
            trial_turn=TrialTurn(),
        )
        super().__init__(store, manager_of, membership, work=work)
        self.apart = Apart()
        self._created: Overlay[str, SessionRecord] = Overlay()
        self._reads = ReadsUnderWay()
        self._deletions: set[asyncio.Task[SessionSummary]] = set()
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        store.watch(self.fail)

    async def start(self, *, session_id: str) -> None:
        """Take up the sessions that have something to do; the session of that id is made if it is not there.

        Sessions that were made without a server belong to the local principal from now on.
        """
        self._limits = await self._store.limits(SERVER)
        for unlisted in await self._store.unlisted_sessions():
            with contextlib.suppress(SessionElsewhereError):
                await self._adopt(unlisted)
        if await self._store.session(session_id) is None:
            with contextlib.suppress(DuplicateIdError, SessionElsewhereError):  # another node was sooner
                await self.create(LOCAL, session_id)
        for busy in await self.membership.taken_first(await self._store.sessions_with_work()):
            await self.open_claimed(busy)

    async def _adopt(self, unlisted: str) -> None:
        is_claimed = await self._store.claim(unlisted)
        try:
            if await self._store.session(unlisted) is None:  # another node may have been sooner
                unit = Unit()
                unit.insert_session(self._new(LOCAL, unlisted))
                await self._store.submit(unit)
        finally:
            if is_claimed:
                await self._store.release(unlisted)

    async def open_claimed(self, session_id: str) -> None:
        """Open a session that this node has."""
        record = await self._record(session_id)
        await self._opened(session_id, LOCAL if record is None else record.owner)

    async def close(self, *, grace_seconds: float) -> None:
        """Let the steps under way finish for so long; when this returns, all sessions are on disk and closed.

        A session that is being deleted by then is gone when the store is opened again.
        """
        self._closing = True
        await self.apart.close()
        for opening in list(self._opening.values()):
            async with opening:  # a session that is being opened is closed by whoever opens it
                pass
        for deletion in self._deletions:
            deletion.cancel()
        await asyncio.gather(*self._deletions, return_exceptions=True)
        opened, self._open = list(self._open.values()), {}
        closing = (each.close(grace_seconds=grace_seconds) for each in opened)
        for outcome in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(outcome, BaseException):
                _log.error("a session could not be closed cleanly", exc_info=outcome)

    async def create(
        self,
        principal: str,
        session_id: str | None = None,
        *,
        title: str = "",
        limits: Stated = None,
        needs: Iterable[str] = (),
    ) -> SessionSummary:
        """Make a session that belongs to the principal. It can be used at once; it is on disk when this returns."""
        self._check_open()
        stated = limits_from(limits, SessionLimits)
        needs = checked_needs(needs)
        stays = await self.membership.has_tags(needs)
        if title:
            check_text("title", title, max_bytes=1000)
        if session_id is None:
            session_id = TimedIds(self._clock, _chance).new()
        checked_session_id(session_id)
        if not await self._claimed_new(session_id):
            raise DuplicateIdError(f"There is a session '{session_id}' already. Choose another id, or none.")
        self._check_open()
        record = replace(self._new(principal, session_id, title=title), needs=needs)
        await asyncio.shield(self._submitted(record, stated))
        if not stays:
            await self.let_go(session_id, grace_seconds=0)  # whoever asks for it is sent to a node with the tags
        return SessionSummary(**asdict(record))

    async def set_needs(self, principal: str, session_id: str, needs: Iterable[str]) -> SessionSummary:
        """Let a session need these tags of the node that has it, and go where they are; raises `StateError`."""
        self._check_open()
        record = replace(await self.get(principal, session_id), needs=checked_needs(needs))
        await self.membership.need(session_id, record.needs)
        return SessionSummary(**asdict(record), agents=await self._store.agents_in(session_id))

    async def _claimed_new(self, session_id: str) -> bool:
        """Whether the session can be made here, and is there nowhere; raises `SessionElsewhereError`."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):  # or else it might be opened, and let go here
            try:
                is_claimed = not self._is_closed_off(session_id) and await self._store.claim(session_id)
            except SessionElsewhereError:
                if await self._record(session_id) is None:
                    raise
                is_claimed = False
            if await self._record(session_id) is None and not self._is_closed_off(session_id):
                return True
            if is_claimed:
                await self._store.release(session_id)
        return False

    async def create_if_missing(self, principal: str, session_id: str) -> None:
        """Make the session if it is not there and sessions are made so here; raises `InvalidInputError` for a bad id.

        Its way to the disk is not waited for: what is done in the session next comes after it, in memory and on disk.
        """
        if not self._create_missing or session_id in self._open or not can_be_id(session_id):
            return
        if await self._record(session_id) is None and not self._is_closed_off(session_id):
            self._check_open()
            checked_session_id(session_id)
            if await self._claimed_new(session_id):
                self._submitted(self._new(principal, session_id), SessionLimits())

    def _submitted(self, record: SessionRecord, stated: SessionLimits) -> asyncio.Future[None]:
        """Hand a new session to the store; the future is done when it is durable."""
        unit = Unit()
        unit.insert_session(record)
        if stated != SessionLimits():
            unit.put_limits(record.id, stated)
        durable = self._store.submit(unit)

        def when_readable(forget: Callable[[], object]) -> None:
            durable.add_done_callback(lambda _: self._reads.when_seen(forget))

        self._created.keep(record.id, record, until=when_readable)
        return durable

    async def set_limits(self, changes: Stated) -> None:
        """Change the limits of the server, which hold for all its sessions, at once and after a restart."""
        self._check_open()
        self._limits = limits = changed(self._limits, changes)
        unit = Unit()
        unit.put_limits(SERVER, limits)
        await self._store.submit(unit)
        await self._tell_limits()

    async def flushed(self) -> None:
        """Wait until all that was decided so far is on disk."""
        await self._store.flushed()

    async def list(self, principal: str, *, limit: int) -> list[SessionSummary]:
        """The principal's sessions, the newest first."""
        return await self._store.sessions(principal, limit=limit)

    async def get(self, principal: str, session_id: str) -> SessionRecord:
        """The session, if it is the principal's; raises `UnknownSessionError` that names those that are."""
        record = await self._record(session_id)
        if record is None or record.owner != principal or session_id in self._deleting:
            raise await self._unknown(principal, session_id)
        return record

    async def is_there(self, session_id: str) -> bool:
        """Whether there is such a session, whoever it belongs to, or will be or was a moment ago."""
        return self._is_closed_off(session_id) or await self._record(session_id) is not None

    async def check_there(self, session_id: str) -> None:
        """Raise `UnknownSessionError` unless there is such a session, whoever it belongs to."""
        if await self._record(session_id) is None:
            raise await self._unknown(LOCAL, session_id)

    async def session(self, principal: str, session_id: str) -> AsyncAgentSessionManager:
        """The open session of the principal; raises `UnknownSessionError`.

        One that is not open is opened, and one that the store refused something is opened anew.
        """
        while True:
            self._check_open()
            if not self.membership.is_sure:
                await self._proven()
            known = self._open.get(session_id)
            if known is None or known.owner != principal or session_id in self._deleting:
                record = await self.get(principal, session_id)
                return await self._opened(session_id, record.owner)
            if known.is_sound:
                return known.manager
            await self._closed(session_id, known, grace_seconds=0)

    def open_session(self, principal: str, session_id: str) -> AsyncAgentSessionManager | None:
        """The session, if it is the principal's and `session` would return it without waiting."""
        known = self._open.get(session_id) if session_id not in self._deleting else None
        if known is None or known.owner != principal or not known.is_sound or self._closing:
            return None
        return known.manager if self.membership.is_sure else None

    async def delete(self, principal: str, session_id: str) -> SessionSummary:
        """Close the session and delete everything in it. This goes on if whoever asked for it does not wait."""
        self._check_open()
        record = await self.get(principal, session_id)
        await self._store.claim(session_id)
        self._check_open()
        self._deleting.add(session_id)
        deletion = asyncio.create_task(self._delete(record), name=f"deletion of {session_id}")
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deleted)
        return await asyncio.shield(deletion)

    async def import_session(self, principal: str, file: str, *, session_id: str | None, data: Path) -> TransferReport:
        """Bring in a session, which begins when it is taken up; raises `DuplicateIdError`, or `ArchiveError`."""
        self._check_open()
        if session_id is not None:
            checked_session_id(session_id)
        return await self._store.import_session(
            Path(file), owner=principal, data=data, session_id=session_id, on_progress=lambda _: None
        )

    async def take_up(self, principal: str, session_ids: Collection[str]) -> None:
        """Let the agents of imported sessions go on if they have something to do, where the tags are that they need."""
        for each in session_ids:
            if (await self.get(principal, each)).needs:
                await self.let_go(each, grace_seconds=0)  # whoever has the tags may have it from now on
        for each in set(session_ids).intersection(await self._store.sessions_with_work()):
            with contextlib.suppress(SessionElsewhereError):  # it is for a node with tags that this one lacks
                await self.session(principal, each)

    async def aged_sessions(self, seconds: float) -> Sequence[str]:
        """The ids of the sessions whose log has something that is older."""
        return await self._store.aged_sessions(self._clock.now() - seconds)

    async def prune(self, session_id: str, *, older_than: str) -> PruneReport | None:
        """Prune a session, whoever it belongs to; it is opened for that. None if it is not there any more."""
        self._check_open()
        record = await self._record(session_id)
        if record is None or session_id in self._deleting:
            return None
        return await (await self.session(record.owner, session_id)).prune(older_than=older_than)

    @property
    def sandbox_name(self) -> str:
        """What holds the programs of agents, as far as that was found out."""
        return self._sandbox if isinstance(self._sandbox, str) else self._sandbox.name

    async def _delete(self, record: SessionRecord) -> SessionSummary:
        try:
            with self._store.pinned(record.id):
                async with self._opening.setdefault(record.id, asyncio.Lock()):  # somebody may be opening it
                    known = self._open.get(record.id)
                    if known is not None:
                        await known.close(grace_seconds=0)
                        self._open.pop(record.id, None)
                await self._store.flushed()
                agents = await self._store.agents_in(record.id)
                await self._store.claim(record.id)  # whoever had it may have let it go just before
                are_gone = self._work is None or await asyncio.to_thread(remove_work_of, self._work, record.id)
                await self._store.delete_session(record.id)
            await self._store.release(record.id, files_left=not are_gone)
        finally:
            self._reads.when_seen(lambda: self._deleting.discard(record.id))
        return SessionSummary(**asdict(record), agents=agents)

    def _deleted(self, deletion: asyncio.Task[SessionSummary]) -> None:
        self._deletions.discard(deletion)
        self._leftovers.look_later()
        if not deletion.cancelled():
            deletion.exception()  # mark as seen: whoever asked may be gone

    def fail(self, failure: BaseException) -> None:
        """Nothing can go on: tell whoever runs the server."""
        if not self.failed.done():
            self.failed.set_result(failure)

    @property
    def failure(self) -> BaseException | None:
        """Why nothing goes on, also if that came about while the server left; None if all is well."""
        return self.failed.result() if self.failed.done() else self._store.health.failure

    def trouble(self) -> str | None:
        """Why this server does not do what it is there for; None if it does."""
        return trouble_of(self._store, self.failed)

    @property
    def warning(self) -> str | None:
        """What a person should see to while everything still works."""
        return self._store.health.warning

    def _is_closed_off(self, session_id: str) -> bool:
        """Whether no session of this id can be made now, as one is being deleted or imported."""
        return session_id in self._deleting or self._store.is_closed_off(session_id)

    async def _record(self, session_id: str) -> SessionRecord | None:
        with self._reads.one_more():
            stored = await self._store.session(session_id)
        return self._created.get(session_id) or stored

    def _new(self, principal: str, session_id: str, *, title: str = "") -> SessionRecord:
        return SessionRecord(id=session_id, title=title, owner=principal, created_at=self._clock.now())

    async def _unknown(self, principal: str, session_id: str) -> UnknownSessionError:
        some = await self._store.sessions(principal, limit=_NAMED_IN_ERRORS + 1)
        names = ", ".join(f"'{each.id}'" for each in some[:_NAMED_IN_ERRORS]) or "none"
        more = " and more" if len(some) > _NAMED_IN_ERRORS else ""
        near = nearest(session_id, [each.id for each in some])
        meant = "" if near is None else f" Did you mean '{near}'?"
        return UnknownSessionError(
            f"There is no session {session_id[:200]!r}.{meant} Sessions: {names}{more}. `whisperer sessions create` "
            "(session.create) makes one."
        )
