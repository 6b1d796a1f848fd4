"""One connection to an MCP server. A task of its own holds it from beginning to end and serves requests of others.

The library's cancel scopes have to be left in the task that entered them: so whoever wants something of the server
puts a request into the queue, and waits for a future. When the future is cancelled, so is the request at the server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import anyio
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, Implementation, ToolListChangedNotification
from pydantic import ValidationError

from ai_whisperer.core.text import mended
from ai_whisperer.errors import McpError, WhispererError
from ai_whisperer.mcp_config import McpServerConfig, filled, secrets_in
from ai_whisperer.secrets import redacted, remember_secret
from ai_whisperer.tools.mcp.wire import Wire, http_wire, stdio_wire

_START_SECONDS = 30.0
_CLOSE_SECONDS = 10.0
_SESSION_ENDED = "Session terminated"
_CLIENT = Implementation(name="ai-whisperer", version="0")
_Dispatcher = JSONRPCDispatcher[TransportContext]

Progress = Callable[[float, float | None, str | None], None]
"""How much is done, of how much, and in words."""


class Listener(Protocol):
    """Who is told what happens to a connection."""

    def tools_changed(self) -> None:
        """The server has other tools than before."""

    def lost(self, connection: Connection) -> None:
        """The connection is over, by itself; `failure` says why. Its processes are being ended."""


class _Request:
    """Something that is asked of the server. `begun` says that the server may know of it."""

    def __init__(self, method: str, params: Mapping[str, Any], on_progress: Progress | None) -> None:
        self.method = method
        self.params = params
        self.on_progress = on_progress
        self.begun = False
        self.scope: anyio.CancelScope | None = None
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(self._given_up)

    def _given_up(self, answer: asyncio.Future[dict[str, Any]]) -> None:
        if answer.cancelled() and self.scope is not None:
            self.scope.cancel()

    def fail(self, error: McpError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Connection:
    """A server that is being talked to. It is begun when it is made, and ended by `close` or by the server itself."""

    def __init__(self, name: str, config: McpServerConfig, listener: Listener) -> None:
        self._name = name
        self._config = config
        self._listener = listener
        self._queue: asyncio.Queue[_Request | None] = asyncio.Queue()
        self._open: set[_Request] = set()
        self._closing = False
        self._failure: McpError | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"mcp server {name}")
        self.has_tools = True
        self.has_resources = False

    @property
    def failure(self) -> McpError | None:
        """Why it is over, if it is."""
        return self._failure

    async def ready(self) -> None:
        """Return when the server answers; raises `McpError` that says why it does not."""
        await asyncio.wait([self._ready])
        self._ready.result()

    async def request(self, method: str, params: Mapping[str, Any], *, on_progress: Progress | None = None) -> Any:
        """The server's answer; raises `McpError`. Whoever gives up waiting takes the request back at the server."""
        if self._failure is not None:
            raise self._failure
        request = _Request(method, params, on_progress)
        self._open.add(request)
        request.answer.add_done_callback(lambda _: self._open.discard(request))
        self._queue.put_nowait(request)
        return await request.answer

    async def close(self) -> None:
        """End the connection; when this returns, the server's processes are gone."""
        self._closing = True
        if not self._ready.done():
            self._task.cancel()  # a server that is greeted and does not answer is not waited for
        self._end("it was stopped")
        self._queue.put_nowait(None)
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        reason = "it ended"
        try:
            async with self._wire() as wire:
                reason = await self._talk(wire)
                self._end(reason)  # before its processes are ended: whoever waits need not wait for that
        except WhispererError as error:
            reason = error.message
        except asyncio.CancelledError:
            reason = "it was cut off"
        except Exception as error:  # noqa: BLE001 - the library may raise anything, in groups too: it ends this server
            reason = _words(error)
        finally:
            self._end(reason)

    def _end(self, reason: str) -> None:
        """The connection is over: tell everyone who waits. Only the first reason counts."""
        if self._failure is not None:
            return
        told = mended(redacted(reason)).rstrip(".")
        was_ready = self._ready.done()
        if not told.startswith("The MCP server"):
            told = f"The MCP server '{self._name}' {'has failed' if was_ready else 'cannot be used'}: {told}"
        self._failure = McpError(f"{told}.")
        for request in list(self._open):
            outcome = "This call was not begun."
            if request.begun:
                outcome = "This call was begun: it may have taken effect or not. Find out before you call it again."
            request.fail(McpError(f"{told}. {outcome}"))
        if not was_ready:
            self._ready.set_exception(self._failure)
            self._ready.exception()  # mark as seen: perhaps nobody waits for it any more
        elif not self._closing:
            self._listener.lost(self)

    def _wire(self) -> AbstractAsyncContextManager[Wire]:
        if self._config.url is None:
            return stdio_wire(self._name, self._config, _filled(self._config.env))
        return http_wire(self._config, _filled(self._config.headers))

    async def _talk(self, wire: Wire) -> str:
        """Serve requests until the connection is over; returns why it is."""
        dispatcher: _Dispatcher = JSONRPCDispatcher(wire.read, wire.write)
        async with ClientSession(dispatcher=dispatcher, message_handler=self._heard, client_info=_CLIENT) as session:
            refusal = await self._shake_hands(session, wire)
            if refusal is not None:
                return refusal
            if not self._ready.done():
                self._ready.set_result(None)
            async with anyio.create_task_group() as calls:
                calls.start_soon(self._watch, wire)
                while (request := await self._queue.get()) is not None:
                    calls.start_soon(self._serve, dispatcher, wire, request)
                calls.cancel_scope.cancel()
            return wire.broken.result() if wire.broken.done() else "it was stopped"

    async def _shake_hands(self, session: ClientSession, wire: Wire) -> str | None:
        """Greet the server; returns why that failed."""
        seconds = min(self._config.timeout_seconds, _START_SECONDS)
        try:
            with anyio.fail_after(seconds):
                greeted = await session.initialize()
        except TimeoutError:
            reason = f"it did not answer within {seconds:g} seconds"
        except MCPError as error:
            reason = await self._refusal(wire, error)
        except (ValidationError, RuntimeError, ValueError) as error:
            reason = f"its answer to initialize is not one of an MCP server: {_words(error)[:500]}"
        else:
            wire.greeted = True
            self.has_tools = greeted.capabilities.tools is not None
            self.has_resources = greeted.capabilities.resources is not None
            return None
        return f"{reason} (it wrote {wire.nonsense!r}, which is not a JSON-RPC message)" if wire.nonsense else reason

    async def _refusal(self, wire: Wire, error: MCPError) -> str:
        if error.code == CONNECTION_CLOSED:
            return await _break_of(wire, error.error.message)
        return f"it refused to begin: {error.error.message[:500]}"

    async def _watch(self, wire: Wire) -> None:
        """End the connection when the wire breaks."""
        await asyncio.wait([wire.broken])
        self._end(wire.broken.result())
        self._queue.put_nowait(None)

    async def _serve(self, dispatcher: _Dispatcher, wire: Wire, request: _Request) -> None:
        if request.answer.done():
            return
        with anyio.CancelScope() as scope:
            request.scope = scope
            request.begun = True
            try:
                answer = await dispatcher.send_raw_request(request.method, request.params, _options(request))
            except MCPError as error:
                await self._refused(wire, request, error)
            except Exception as error:  # noqa: BLE001 - whatever the library raises ends this request alone
                request.fail(McpError(f"The MCP server '{self._name}' failed: {redacted(_words(error))}."))
            else:
                if not request.answer.done():
                    request.answer.set_result(wire.restored(answer))

    async def _refused(self, wire: Wire, request: _Request, error: MCPError) -> None:
        said = mended(redacted(error.error.message))[:2_000]
        if error.code == CONNECTION_CLOSED:
            self._end(await _break_of(wire, said))
        elif said == _SESSION_ENDED:
            wire.break_off("it no longer knows the session")
        request.fail(McpError(f"The MCP server '{self._name}' refused: {said}"))

    async def _heard(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listener.tools_changed()


def _options(request: _Request) -> CallOptions:
    options = CallOptions()
    if (on_progress := request.on_progress) is not None:

        async def told(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message)

        options["on_progress"] = told
    return options


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    """The values with the variables of the environment in them. All of them are secrets from now on."""
    values: dict[str, str] = {}
    for key, text in texts.items():
        values[key], secrets = filled(text, os.environ)
        for secret in (*secrets, *secrets_in(values[key])):
            remember_secret(secret)
    return values


async def _break_of(wire: Wire, otherwise: str) -> str:
    """Why the connection broke. The pipes tell that soon after; over HTTP nothing more is known."""
    await asyncio.wait([wire.broken], timeout=1.0)
    wire.break_off(otherwise or "the connection was closed")
    return wire.broken.result()


def _words(error: BaseException) -> str:
    """The first thing that went wrong, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
