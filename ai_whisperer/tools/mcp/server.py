"""One MCP server of a session: started when it is needed, listed, called, and started again when it died."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
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
from ai_whisperer.tools.mcp.listing import MAX_TOOLS, Listing, listing_of

if TYPE_CHECKING:
    from ai_whisperer.tools.mcp.connection import Connection, Progress

_MAX_FAILURES = 5
_WINDOW_SECONDS = 600.0
_FIRST_DELAY_SECONDS = 1.0
_MAX_PAGES = 50

Tell = Callable[[McpServerTold], None]
"""Announces what happened to the server."""


class Backoff:
    """When a server that failed may be started again: each time later, and not for a while after many failures."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque(maxlen=_MAX_FAILURES)

    def failed(self, now: float) -> float:
        """Count a failure; returns when the next start may be."""
        while self._failures and self._failures[0] <= now - _WINDOW_SECONDS:
            self._failures.popleft()
        self._failures.append(now)
        if self.gave_up:
            return self._failures[0] + _WINDOW_SECONDS
        if len(self._failures) == 1:
            return now
        return now + _FIRST_DELAY_SECONDS * 2.0 ** (len(self._failures) - 2)

    @property
    def gave_up(self) -> bool:
        return len(self._failures) == _MAX_FAILURES


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
        """See to it that `listing` is as the server has it now. It stays what it was if the server cannot say."""
        if self._stale and (self._retry_at is None or self._retry_at <= self._clock.elapsed()):
            try:
                await self._list(patience_seconds=0)
            except McpError as error:
                self._error = error.message

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
        connection = await self._connected(patience_seconds=self.config.timeout_seconds)
        seconds = self.config.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                params = {"name": tool, "arguments": arguments}
                return await connection.request("tools/call", params, on_progress=on_progress)
        except TimeoutError:
            raise McpError(
                f"The MCP server '{self.name}' did not answer within {seconds:g} seconds. This call was begun: it may "
                "have taken effect or not. Find out before you call it again."
            ) from None

    async def close(self) -> None:
        """Stop the server; when this returns its processes are gone."""
        self._closed = True
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
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

    async def _list(self, *, patience_seconds: float) -> None:
        connection = await self._connected(patience_seconds=patience_seconds)
        async with self._refreshing:
            if not self._stale:
                return
            self._stale = False
            try:
                async with asyncio.timeout(self.config.timeout_seconds):
                    raw = await _pages(connection) if connection.has_tools else []
            except TimeoutError:
                self._stale = True
                raise McpError(f"The MCP server '{self.name}' did not list its tools in time.") from None
            except BaseException:
                self._stale = True
                raise
            self.listing = listing_of(self.name, raw)
            self._error = None
            self._tell(
                McpToolsListed(name=self.name, tools=list(self.listing.tools), problems=list(self.listing.problems))
            )

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
