"""The answers of providers over HTTP, bounded before anything of ours or of a client library reads them.

`bound` is for an HTTP client of httpx or httpx2; `BoundedBody` for any body that arrives in pieces. Errors are cut to
what people can read. Of an answer, each event is bounded, and all of it together: so much, and so much more for each
byte of content that is in it. The event loop has its turn after a few milliseconds of work.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

from ai_whisperer.models.bounded_reads import bound_reads, bound_trailers
from ai_whisperer.models.event_bounds import EventCutter, EventTooLargeError

MAX_ERROR_BYTES = 64 << 10
"""So much is read of what a provider says beside an error."""
MAX_BARE_BYTES = 4 << 20
"""So many bytes may come without any content: comments, empty events, what stands around the content."""
MAX_BYTES_PER_BYTE = 512
"""So many more may come for each byte of content."""
MAX_BODY_BYTES = 256 << 20
"""So many may come in all."""

_TURN_SECONDS = 0.005
_ENCODINGS = "gzip, deflate"
_COMPRESSED = ("gzip", "x-gzip", "deflate")
_AS_IT_IS = ("", "identity")
_PIECE_BYTES = 16 << 10


class WireLimitError(Exception):
    """What the provider sends is beyond what can be an answer."""


class Meter:
    """What came of one answer: `content` is counted by whoever reads it."""

    __slots__ = ("_since", "content", "received")

    def __init__(self) -> None:
        self.content = 0
        self.received = 0
        self._since = time.thread_time()

    def count(self, size: int) -> None:
        """So many bytes have come; raises `WireLimitError` if that is too much."""
        self.received += size
        if self.received <= MAX_BARE_BYTES:
            return
        most = min(MAX_BARE_BYTES + MAX_BYTES_PER_BYTE * self.content, MAX_BODY_BYTES)
        if self.received > most:
            raise WireLimitError(f"it sent {self.received:,} bytes with {self.content:,} bytes of content in them")

    @property
    def turn_is_over(self) -> bool:
        """Whether it has been our turn for a while, counted in work, not in waiting."""
        return time.thread_time() - self._since > _TURN_SECONDS

    async def let_others(self) -> None:
        """Give others their turn if ours is over."""
        if self.turn_is_over:
            await asyncio.sleep(0)
            self._since = time.thread_time()


current_meter: ContextVar[Meter | None] = ContextVar("current_meter", default=None)
"""The meter of the answer that is being asked for."""


def bound(client: Any) -> None:
    """Bound every response of an asynchronous client of httpx or httpx2."""
    bound_reads(client)
    client.headers["Accept-Encoding"] = _ENCODINGS
    hooks = client.event_hooks
    client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), _bound_response]}


async def _bound_response(response: Any) -> None:
    bound_trailers(response)
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding:
        del response.headers["content-encoding"]  # it is undone here
    response.stream = _body_class(type(response).__module__.partition(".")[0])(
        response.stream,
        encoding=encoding,
        is_error=not response.is_success,
        lines="event-stream" not in response.headers.get("content-type", ""),
    )


class BoundedBody:
    """A body, in pieces of whole events. Iterating it raises `error_class`; the body of an error just ends."""

    error_class: type[Exception] = WireLimitError

    def __init__(self, pieces: Any, *, encoding: str = "", is_error: bool = False, lines: bool = False) -> None:
        self._pieces = pieces
        self._encoding = encoding
        self._is_error = is_error
        self._cutter = EventCutter(lines=lines)
        self._meter = current_meter.get() or Meter()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self._is_error:
                async with aclosing(self._start()) as start:
                    async for piece in start:
                        yield piece
                return
            # Not in a generator of its own: each one on the way takes its time for each event.
            async with aclosing(self._decoded()) as pieces:
                async for piece in pieces:
                    self._meter.count(len(piece))
                    for events in self._cutter.feed(piece):
                        if self._meter.turn_is_over:
                            await self._meter.let_others()
                        yield events
                    if self._cutter.held:
                        await self._meter.let_others()
            for events in self._cutter.finish():
                yield events
        except (WireLimitError, EventTooLargeError) as error:
            raise self.error_class(str(error)) from None

    async def aclose(self) -> None:
        await self._pieces.aclose()

    async def _start(self) -> AsyncGenerator[bytes, None]:
        left = MAX_ERROR_BYTES
        async with aclosing(self._decoded()) as pieces:
            async for piece in pieces:
                yield piece[:left]
                left -= len(piece)
                if left <= 0:
                    return

    def _decoded(self) -> AsyncGenerator[bytes, None]:
        pieces: AsyncGenerator[bytes, None] = aiter(self._pieces)
        return pieces if self._encoding in _AS_IT_IS else self._inflated(_Inflater(self._encoding), pieces)

    async def _inflated(self, inflater: _Inflater, packed: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        async with aclosing(packed) as pieces:
            async for data in pieces:
                for piece in inflater.feed(data):
                    await self._meter.let_others()
                    yield piece


class _Inflater:
    """Undoes the compression of a body in pieces of a bounded size, however much comes out of a few bytes."""

    def __init__(self, encoding: str) -> None:
        if encoding not in _COMPRESSED:
            raise WireLimitError(f"it is encoded as {encoding[:40]!r}, which was not asked for")
        self._encoding = encoding
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes) -> Iterator[bytes]:
        inflated = b""
        while data or len(inflated) == _PIECE_BYTES:
            try:
                inflated = self._inflate.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise WireLimitError(f"it is not {self._encoding} data as it says: {error}") from None
            yield inflated
            data = self._inflate.unconsumed_tail


@cache
def _body_class(package: str) -> Any:
    """The body for responses of httpx or of httpx2, whose errors their users take for those of the network."""
    library = import_module(package)
    error = type("WireError", (WireLimitError, library.RequestError), {})
    return type("Body", (BoundedBody, library.AsyncByteStream), {"error_class": error})
