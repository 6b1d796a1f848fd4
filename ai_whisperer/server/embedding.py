"""The page and the WebSocket of one session that a program holds open, served from that program's process."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from msgspec.structs import asdict, replace

from ai_whisperer.cluster.membership import membership_of
from ai_whisperer.domain.sessions import SessionRecord, SessionSummary
from ai_whisperer.errors import StateError
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.runtime.api.page import Served
from ai_whisperer.secrets import remember_secret
from ai_whisperer.server import answers  # noqa: F401 - it registers itself
from ai_whisperer.server.app import Application
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.serving import announced, kept_token, listen, served_address, taking_requests
from ai_whisperer.settings import LOCAL, Settings
from ai_whisperer.store.base import SERVER, Unit


class EmbeddedHost(SessionHost):
    """Has the session that the program holds open, and no other. Its end is the program's business."""

    def __init__(self, served: Served) -> None:
        super().__init__(
            served.store,
            model=served.model,
            templates=served.templates,
            tools=served.tools,
            create_missing=False,
            membership=membership_of(served.store),
        )
        self._manager: AsyncAgentSessionManager = served.manager

    async def adopt(self) -> None:
        """See that the session is listed, so that a server that is started later has it too."""
        self._limits = await self._store.limits(SERVER)
        if await self._store.session(self._manager.session_id) is None:
            unit = Unit()
            unit.insert_session(self._new(LOCAL, self._manager.session_id))
            await self._store.submit(unit)

    async def close(self, *, grace_seconds: float = 0) -> None:  # noqa: ARG002 - nothing is ended here
        self._closing = True

    async def create(self, *_: object, **__: object) -> SessionSummary:
        raise _not_here("make another session")

    async def delete(self, principal: str, session_id: str) -> SessionSummary:
        await self.get(principal, session_id)
        raise _not_here("delete it")

    async def list(self, principal: str, *, limit: int) -> list[SessionSummary]:
        record = await self._record(self._manager.session_id)
        if record is None or record.owner != principal:
            return []
        return [SessionSummary(**asdict(record), agents=await self._store.agents_in(record.id))][:limit]

    async def get(self, principal: str, session_id: str) -> SessionRecord:
        if session_id != self._manager.session_id:
            raise await self._unknown(principal, session_id)
        return await super().get(principal, session_id)

    async def session(self, principal: str, session_id: str) -> AsyncAgentSessionManager:
        self._check_open()
        if not self.membership.is_sure:
            await self._proven()
        await self.get(principal, session_id)
        return self._manager

    def open_session(self, principal: str, session_id: str) -> AsyncAgentSessionManager | None:
        is_ours = session_id == self._manager.session_id and principal == LOCAL
        is_fit = not self._closing and self._manager.failure is None and self.membership.is_sure
        return self._manager if is_ours and is_fit else None

    @property
    def open_sessions(self) -> Sequence[AsyncAgentSessionManager]:
        return [] if self._closing else [self._manager]


@asynccontextmanager
async def page_of(served: Served) -> AsyncIterator[str]:
    """Serve the page of the open session on a free port of this machine's own address, as long as the block runs.

    Brings the address of the page with the token that lets in.
    With a data folder its token is used, and the address is kept there, where commands find it.
    """
    session_id, data = served.manager.session_id, served.data
    settings = replace(Settings(), host="127.0.0.1", port=0, session=session_id, data=data or Path())
    token = secrets.token_urlsafe(32) if data is None else kept_token(data)
    remember_secret(token)
    host = EmbeddedHost(served)
    listening = listen(settings)
    try:
        port = listening.getsockname()[1]
        app = Application(host, {LOCAL: token}, settings=settings, port=port)
        served_at = served_address(settings, token, port=port, temporary=True)
        address = replace(served_at, in_postgresql=bool(host.membership.secret))
        await host.adopt()
        async with taking_requests(app, listening, settings, on_failure=host.fail):
            with nullcontext() if data is None else announced(data, address):
                try:
                    yield address.page
                finally:
                    await host.close()
    finally:
        listening.close()


def _not_here(what: str) -> StateError:
    return StateError(
        f"A program holds this session open, and serves this page for it alone: it cannot {what}. Do it with "
        "`whisperer serve` when the program has ended."
    )
