"""One MCP server of a session: started when it is needed, listed, called, and started again when it died."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from contextvars import Context
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ai_whisperer.domain.clock import Clock
from ai_whisperer.domain.mcp import McpServerStatus, McpState, McpToolStatus
from ai_whisperer.domain.notifications.mcp import (
    McpServerFailed,
    McpServerStarted,
    McpServerStopped,
    McpServerTold,
    McpToolsListed,
)
from ai_whisperer.errors import McpError
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.tools.mcp.backoff import Backoff
from ai_whisperer.tools.mcp.listing import MAX_TOOLS, Listing, listing_of

if TYPE_CHECKING:
    from ai_whisperer.tools.mcp.connection import Connection, Progress

_MAX_PAGES = 50
_PATIENCE_SECONDS = 10.0
"""So long a start is waited for by those who go on without the tools if it takes longer."""
_PAUSE_SECONDS = 1.0
"""So long nothing is tried after a failure, even if it was the first."""

Tell = Callable[[McpServerTold], None]
"""Announces what happened to the server."""


class McpServer:
    """What a session knows of a server and does with it. All of it happens in one event loop."""

    def __init__(self, name: str, config: McpServerConfig, *, clock: Clock, tell: Tell) -> None:
        self.name = name
        self.config = config
        self.listing: Listing | None = None
        self._state = McpState.NOT_STARTED
        self._error: str | None = None
        self._retry_at: float | None = None
        self._clock = clock
        self._tell = tell
        self._backoff = Backoff()
        self._stale = True
        self._connection: Connection | None = None
        self._starting: asyncio.Task[None] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._is_prompt = True
        self._patient_until = 0.0
        self._endings: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._closed = False

    def status(self) -> McpServerStatus:
        listing = self.listing or Listing(tools={})
        return McpServerStatus(
            name=self.name,
            target=self.config.target,
            state=self._state,
            tools=tuple(
                McpToolStatus(name=name, description=each.spec.description, hints=each.hints)
                for name, each in listing.tools.items()
            ),
            problems=listing.problems,
            error=self._error,
            retry_at=None if self._retry_at is None else self._shown(self._retry_at),
        )

    async def refresh(self) -> None:
        """See to it that `listing` becomes as the server has it now, and wait a moment for that.

        It stays what it was if the server cannot say. What takes longer, and what failed and is tried again, goes on by
        itself: nobody waits for it until the server has listed its tools again. Of a server that is `required` the
        first listing is waited for, however long it takes.
        """
        if not self._stale or self._closed:
            return
        if self._trying is None:
            self._begin_to_try()
        if self._trying is not None:
            if self.config.required and self.listing is None:
                await asyncio.wait([self._trying])
            elif (seconds := self._patient_until - self._clock.elapsed()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._tried.wait()

    async def start(self) -> None:
        """Start it and list its tools, whatever happened before; raises `McpError`."""
        self._retry_at, self._backoff = None, Backoff()
        await self._list(patience_seconds=0)

    async def listed(self) -> Listing:
        """The tools as they were listed last; raises `McpError` if they never were and the server cannot do it."""
        if self.listing is None:
            await self._list(patience_seconds=self.config.timeout_seconds)
        return self.listing or Listing(tools={})

    async def call(self, tool: str, arguments: Mapping[str, Any], on_progress: Progress) -> Any:
        """Call a tool by the name that the server has for it; raises `McpError`."""
        try:
            return await self._asked("tools/call", {"name": tool, "arguments": arguments}, on_progress)
        except TimeoutError:
            raise McpError(
                f"{self._no_answer} This call was begun: it may have taken effect or not. Find out before you call it "
                "again."
            ) from None

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Ask for something that has no effects; raises `McpError`."""
        try:
            return await self._asked(method, params, None)
        except TimeoutError:
            raise McpError(self._no_answer) from None

    @property
    def _no_answer(self) -> str:
        return f"The MCP server '{self.name}' did not answer within {self.config.timeout_seconds:g} seconds."

    async def _asked(self, method: str, params: Mapping[str, Any], on_progress: Progress | None) -> Any:
        connection = await self._connected(patience_seconds=self.config.timeout_seconds)
        async with asyncio.timeout(self.config.timeout_seconds):
            return await connection.request(method, params, on_progress=on_progress)

    async def close(self) -> None:
        """Stop the server; when this returns its processes are gone."""
        self._closed = True
        for task in (self._trying, self._starting):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
            self._state = McpState.STOPPED
            self._tell(McpServerStopped(name=self.name))
        if self._endings:
            await asyncio.wait(self._endings)

    def tools_changed(self) -> None:
        """The server has other tools than before: they are listed when they are needed next."""
        self._stale = True

    def lost(self, connection: Connection) -> None:
        """The server died, or broke off the connection."""
        if self._connection is connection and connection.failure is not None:
            self._connection = None
            self._let_end(connection)
            self._failed(connection.failure)

    def _begin_to_try(self) -> None:
        """List the tools, in the background, unless the server has to rest first and nobody needs it so badly."""
        now = self._clock.elapsed()
        if self.config.required or self._retry_at is None or self._retry_at <= now:
            self._patient_until = now + (_PATIENCE_SECONDS if self._is_prompt else 0.0)
            self._tried.clear()
            self._trying = asyncio.create_task(
                self._try_until_listed(), name=f"listing of mcp server {self.name}", context=Context()
            )

    async def _try_until_listed(self) -> None:
        """Try again and again, each time later. It ends after many failures, unless the server is required."""
        try:
            while True:
                if self._retry_at is not None:
                    await asyncio.sleep(max(self._retry_at - self._clock.elapsed(), 0.0))
                try:
                    await self._list(patience_seconds=0)
                except McpError as error:
                    self._error, self._is_prompt = error.message, False
                else:
                    self._is_prompt = True
                    return
                finally:
                    self._tried.set()
                if self._closed or (self._backoff.gave_up and not self.config.required):
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._trying = None

    async def _list(self, *, patience_seconds: float) -> None:
        connection = await self._connected(patience_seconds=patience_seconds)
        async with self._refreshing:
            if not self._stale:
                return
            self._stale = False
            try:
                raw = await self._entries(connection)
            except BaseException as error:
                self._stale = True
                if isinstance(error, McpError) and self._connection is connection:
                    self._not_listed(connection, error)
                raise
            self.listing = listing_of(self.name, raw, has_resources=connection.has_resources)
            self._error = self._retry_at = None
            self._tell(
                McpToolsListed(name=self.name, tools=list(self.listing.tools), problems=list(self.listing.problems))
            )

    async def _entries(self, connection: Connection) -> list[Any]:
        try:
            async with asyncio.timeout(self.config.timeout_seconds):
                return await _pages(connection) if connection.has_tools else []
        except TimeoutError:
            raise McpError(f"The MCP server '{self.name}' did not list its tools in time.") from None

    def _not_listed(self, connection: Connection, error: McpError) -> None:
        """A server that never listed its tools is of no use. One that did is: it is asked again later."""
        if self.listing is None:
            self._connection = None
            self._let_end(connection)
            self._failed(error)
        else:
            self._retry_at = self._backoff.failed(self._clock.elapsed())

    async def _connected(self, *, patience_seconds: float) -> Connection:
        """The connection, begun if there is none. A server that failed is waited for if it may start again so soon."""
        while self._connection is None:
            if self._starting is None:
                await self._wait_for_retry(patience_seconds)
            if self._closed:  # perhaps while it was waited for
                raise McpError(f"The MCP server '{self.name}' was stopped with its session.")
            if self._starting is None:
                self._starting = asyncio.create_task(self._start(), name=f"start of mcp server {self.name}")
            starting = self._starting
            await asyncio.wait([starting])  # whoever gives up does not stop it: others may wait for it too
            if not starting.cancelled():
                starting.result()
        return self._connection

    async def _wait_for_retry(self, patience_seconds: float) -> None:
        if self._retry_at is None:
            return
        seconds = self._retry_at - self._clock.elapsed()
        if seconds > (0.0 if self._backoff.gave_up else patience_seconds):
            raise McpError(f"{self._error} It is started again in {seconds:.0f} seconds at the earliest.")
        await asyncio.sleep(max(seconds, 0.0))

    async def _start(self) -> None:
        self._state = McpState.STARTING
        self._stale = True
        connection: Connection | None = None
        try:
            connection = await self._begun()
            await connection.ready()
        except McpError as error:
            if connection is not None:
                self._let_end(connection)
            self._failed(error)
            raise
        except asyncio.CancelledError:
            if connection is not None:
                await connection.close()
            raise
        else:
            self._connection = connection
            self._state, self._error, self._retry_at = McpState.READY, None, None
            self._tell(McpServerStarted(name=self.name))
        finally:
            self._starting = None

    async def _begun(self) -> Connection:
        """A connection that begins. The library is loaded with the first; raises `McpError` if it is not installed."""
        try:
            await asyncio.to_thread(_load_library)
        except ImportError as error:
            raise McpError(
                f"The MCP server '{self.name}' cannot be used: the package mcp is missing ({error}). Install it: "
                "pip install 'ai-whisperer[mcp]'"
            ) from error
        from ai_whisperer.tools.mcp.connection import Connection

        return Connection(self.name, self.config, self)

    def _let_end(self, connection: Connection) -> None:
        """Its processes may take a moment to go: `close` waits for that."""
        ending = asyncio.create_task(connection.close(), name=f"end of mcp server {self.name}")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _failed(self, error: McpError) -> None:
        self._state = McpState.FAILED
        self._error = error.message
        self._retry_at = self._backoff.failed(self._clock.elapsed())
        will_retry_at = self._shown(self._retry_at)
        self._tell(McpServerFailed(name=self.name, error=error.message, will_retry_at=will_retry_at))

    def _shown(self, retry_at: float) -> float:
        """What the wall clock shows at that time."""
        return self._clock.now() + retry_at - self._clock.elapsed()


def _load_library() -> None:
    import_module("ai_whisperer.tools.mcp.connection")
    # It logs what servers say, with tracebacks: what matters of that is announced, the rest would flood the log.
    for logger in ("mcp", "client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)


async def _pages(connection: Connection) -> list[Any]:
    """The entries of all pages, as many as can be used; raises `McpError`."""
    entries: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await connection.request("tools/list", {} if cursor is None else {"cursor": cursor})
        tools = page.get("tools")
        if not isinstance(tools, list):
            raise McpError("The MCP server lists its tools in a way that cannot be read.")
        entries.extend(tools)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(entries) > MAX_TOOLS:
            break
    return entries
