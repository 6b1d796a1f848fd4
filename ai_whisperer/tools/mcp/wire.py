"""How messages go to an MCP server and come back: over the pipes of a process, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.tools.mcp.http_answers import MAX_BYTES, LongAnswers, PlainTransport
from ai_whisperer.tools.mcp.lines import LISTENED_TO, EndlessLineError, Lines, message_of
from ai_whisperer.tools.mcp.process import ServerProcess, start_process

_READ_BYTES = 64 << 10
_WAITING_MESSAGES = 64
_MAX_NONSENSE = 1_000
_CONNECT_SECONDS = 30.0

Incoming = SessionMessage | Exception


class Wire:
    """The two streams of a connection. `broken` is done, with the reason, when nothing more can come.

    `restored` makes the result that was meant of one that came.
    """

    def __init__(self, read: Any, write: Any) -> None:
        self.read = read
        self.write = write
        self.broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.nonsense = ""
        self.greeted = False
        self.restored: Callable[[dict[str, Any]], dict[str, Any]] = lambda result: result

    def break_off(self, reason: str) -> None:
        if not self.broken.done():
            self.broken.set_result(reason)


@asynccontextmanager
async def stdio_wire(name: str, config: McpServerConfig, env: Mapping[str, str]) -> AsyncIterator[Wire]:
    """Run the server's command and talk over its pipes. When this is left, the processes are gone."""
    process = await start_process(name, config, env)
    arrived, read = anyio.create_memory_object_stream[Incoming](0)
    write, leaving = anyio.create_memory_object_stream[SessionMessage](_WAITING_MESSAGES)
    wire = Wire(read, write)
    try:
        async with anyio.create_task_group() as pipes:
            pipes.start_soon(_Reader(process, wire, arrived).run)
            pipes.start_soon(_write, process, wire, leaving)
            try:
                yield wire
            finally:
                with anyio.CancelScope(shield=True):
                    await process.end(in_peace=wire.greeted and not wire.broken.done())
                pipes.cancel_scope.cancel()
    finally:
        for stream in (arrived, read, write, leaving):
            stream.close()


class _Reader:
    """Reads what the server says, a line a message, and passes on what somebody waits for.

    What the server asks of us is refused here, and what nobody listens to is dropped: so a server that floods has
    no more than one message in memory at a time.
    """

    def __init__(self, process: ServerProcess, wire: Wire, arrived: MemoryObjectSendStream[Incoming]) -> None:
        self._process = process
        self._wire = wire
        self._arrived = arrived
        self._nonsense = 0

    async def run(self) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            await self._read()
        if not self._wire.broken.done():
            self._wire.break_off(await self._process.how_it_ended())
        self._arrived.close()

    async def _read(self) -> None:
        lines = Lines()
        try:
            while some := await self._process.output.read(_READ_BYTES):
                for line in lines.feed(some):
                    if self._wire.broken.done():
                        return
                    await self._take(line)
        except EndlessLineError:
            self._wire.break_off("it wrote a line that has no end")

    async def _take(self, line: bytes | JSONRPCError) -> None:
        message = message_of(line) if isinstance(line, bytes) else line
        if message is None:
            self._count_nonsense(line)
        elif isinstance(message, JSONRPCRequest):
            self._answer(message)
        elif not isinstance(message, JSONRPCNotification) or message.method in LISTENED_TO:
            self._nonsense = 0
            await self._arrived.send(SessionMessage(message))
            return
        await asyncio.sleep(0)

    def _count_nonsense(self, line: bytes | JSONRPCError) -> None:
        self._nonsense += 1
        if isinstance(line, bytes):
            self._wire.nonsense = self._wire.nonsense or line[:200].decode(errors="replace").strip()
        if self._nonsense > _MAX_NONSENSE:
            self._wire.break_off(f"it wrote {self._nonsense:,} lines that are not JSON-RPC messages")

    def _answer(self, request: JSONRPCRequest) -> None:
        """Servers may ask whether we are there, and nothing else."""
        answer: JSONRPCMessage
        if request.method == "ping":
            answer = JSONRPCResponse(jsonrpc="2.0", id=request.id, result={})
        else:
            told = f"This client does not offer {request.method[:100]} to servers."
            error = ErrorData(code=METHOD_NOT_FOUND, message=told)
            answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        with contextlib.suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._wire.write.send_nowait(SessionMessage(answer))  # one that does not read gets no answer


async def _write(process: ServerProcess, wire: Wire, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
    try:
        async for each in leaving:
            line = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.input.write(line.encode(errors="replace") + b"\n")
            await process.input.drain()
    except (ConnectionError, RuntimeError):
        wire.break_off(await process.how_it_ended())
        leaving.close()


@asynccontextmanager
async def http_wire(config: McpServerConfig, headers: Mapping[str, str]) -> AsyncIterator[Wire]:
    """Talk to the server at the address. Messages that are too long are refused."""
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=config.timeout_seconds)
    answers = LongAnswers()
    transport = PlainTransport(httpx2.AsyncHTTPTransport(), answers)
    sent = httpx2.Headers(dict(headers))
    sent["accept-encoding"] = "identity"
    async with (
        httpx2.AsyncClient(headers=sent, timeout=timeout, transport=transport) as client,
        streamable_http_client(config.url or "", http_client=client, max_sse_event_size=MAX_BYTES) as streams,
    ):
        wire = Wire(*streams)
        wire.restored = answers.restored
        yield wire
