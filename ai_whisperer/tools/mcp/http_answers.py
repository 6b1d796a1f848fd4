"""What a server sends over HTTP, made short before the library reads it: to read it takes the library long.

A long answer is read here, in the way the lines of a process are. The library is handed a short one in its place, and
whoever asked is given what was kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from ai_whisperer.tools.mcp.lines import LISTENED_TO, TOO_MANY_PARTS, Message, has_too_many_parts, message_of, refused

MAX_BYTES = 1 << 20
"""Of an answer, and of each event of a stream of them."""

_MAX_READ_BY_LIBRARY = 48 << 10
_MAX_KEPT = 64
_MAX_ERROR_CHARACTERS = 2_000
_KEPT = "ai-whisperer-kept"


class LongAnswers:
    """The results of long answers between their arrival and whoever asked for them."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Any]] = {}

    def shortened(self, message: bytes) -> bytes:
        """The message, or a short one in its place; nothing in place of a long one that answers nothing."""
        if len(message) <= _MAX_READ_BY_LIBRARY:
            return message
        if has_too_many_parts(message):
            read: Message | None = next(refused(message, TOO_MANY_PARTS), None)
        else:
            read = message_of(message)
        if isinstance(read, JSONRPCResponse):
            key = secrets.token_hex(16)
            self._kept[key] = read.result
            if len(self._kept) > _MAX_KEPT:  # those who asked have given up
                del self._kept[next(iter(self._kept))]
            return _encoded(read.id, result={_KEPT: key})
        if isinstance(read, JSONRPCError):
            told = read.error.message[:_MAX_ERROR_CHARACTERS]
            return _encoded(read.id, error={"code": read.error.code, "message": told})
        return b""

    def restored(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result itself, or that in whose place it stands."""
        key = result.get(_KEPT)
        return self._kept.pop(key, result) if isinstance(key, str) else result


class PlainTransport(httpx2.AsyncBaseTransport):
    """Lets no answer through that is packed, which could become any size, nor one that is too long."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, answers: LongAnswers) -> None:
        self._inner = inner
        self._answers = answers

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("", "identity"):
            await response.aclose()
            raise httpx2.ReadError(f"The answer is packed as {packed[:40]!r}, which was not asked for.")
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.stream = (_Events if is_stream else _Body)(response.stream, self._answers)
        response.headers.pop("content-length", None)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, answers: LongAnswers) -> None:
        self._inner = inner
        self._answers = answers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for some in self._inner:
            body += some
            if len(body) > MAX_BYTES:
                raise httpx2.ReadError(f"The answer has more than {MAX_BYTES:,} bytes.")
        yield self._answers.shortened(bytes(body)) or b"null"

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(_Body):
    """A stream of events has no end, and a limit for each of them."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest, event = b"", _Event()
        async for some in self._inner:
            *lines, rest = (rest + some).splitlines(keepends=True) or [b""]
            if rest.endswith(b"\n"):  # after CR alone its LF may still come
                lines.append(rest)
                rest = b""
            ended: list[bytes] = []
            for line in lines:
                if event.takes(line.rstrip(b"\r\n")):
                    ended += event.written(self._answers)
                    event = _Event()
                if event.size > MAX_BYTES:
                    break
            if event.size + len(rest) > MAX_BYTES:
                raise httpx2.ReadError(f"An event has more than {MAX_BYTES:,} bytes.")
            for each in ended:
                yield each
                await asyncio.sleep(0)
            await asyncio.sleep(0)


class _Event:
    """The lines of one event."""

    def __init__(self) -> None:
        self.size = 0
        self._data: list[bytes] = []
        self._others: list[bytes] = []

    def takes(self, line: bytes) -> bool:
        """Take a line; returns whether it ends the event."""
        if not line:
            return True
        name, _, value = line.partition(b":")
        if name == b"data":
            self.size += len(line) + 1
            self._data.append(value.removeprefix(b" "))
        elif name:  # or it is a comment, for nobody
            self.size += len(line) + 1
            self._others.append(line)
        return False

    def written(self, answers: LongAnswers) -> list[bytes]:
        """The event as the library is to read it; none if there is nothing in it."""
        data = answers.shortened(b"\n".join(self._data)) if self._data else b""
        if data and _is_for_nobody(data):
            data = b""
        lines = [*self._others, *(b"data: " + each for each in data.split(b"\n") if data)]
        return [b"\n".join([*lines, b"", b""])] if lines else []


def _is_for_nobody(message: bytes) -> bool:
    """A server can send those by the thousand, and the library would take each as far as it can."""
    read = message_of(message)
    return isinstance(read, JSONRPCNotification) and read.method not in LISTENED_TO


def _encoded(request_id: int | str | None, **fields: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, **fields})
