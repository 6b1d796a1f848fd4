"""One HTTP/1.1 connection: a request is written, and its response read as it comes, in bounds.

Whatever the peer sends, the event loop has its turn after each small piece, and no more than a little is held.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import httptools

from ai_whisperer.core.lateness import spared_seconds

MAX_HEAD_BYTES = 16 << 10
"""So much may come without any body: the head of a response with all that is before it, and what is after the body."""
_FED_BYTES = 16 << 10
"""So much is taken apart in one go."""
_HELD_BYTES = 64 << 10
"""When so much waits for its reader, nothing more is read."""


class NoHttpError(Exception):
    """The peer speaks no proper HTTP."""


class HungUpError(ConnectionError):
    """The peer took the request and closed the connection without a word."""


class BrokenOffError(ConnectionError):
    """The connection ended before the response was complete."""


class SilenceError(TimeoutError):
    """Nothing has come for as long as the request is willing to wait."""


class Head(NamedTuple):
    """The head of a response; the names of the headers are in small letters."""

    status: int
    headers: Mapping[str, str]


class Connection(asyncio.Protocol):
    """A connection of one event loop. One request at a time: `begin`, `head`, then `read` until nothing more comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._wire: asyncio.Transport | None = None  # the transport beneath TLS
        self._is_paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._unfed = b""
        self._lost: tuple[Exception | None] | None = None
        self.idle_since = 0.0
        self._reset(None)

    def _reset(self, patience_seconds: float | None) -> None:
        self._parser: httptools.HttpResponseParser | None = None
        self._patience_seconds = patience_seconds
        self._last = 0.0
        self._spared = 0
        self._head: Head | None = None
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self._held = 0
        self._bare = 0
        self._is_done = False
        self._keeps = False
        self._error: Exception | None = None
        self._then: Callable[[], None] | None = None

    # What is done with it

    def begin(self, request: bytes, *, patience_seconds: float | None) -> None:
        """Write a request. If nothing comes for so long, reading raises `SilenceError`."""
        self._reset(patience_seconds)
        self._parser = httptools.HttpResponseParser(self)
        if self._lost is not None or self._transport is None:
            self._error = HungUpError("the connection was closed")
            return
        self._transport.write(request)
        if patience_seconds is not None:
            self._last = self._loop.time()
            self._watch = self._loop.call_later(patience_seconds, self._look, self._last + patience_seconds)

    async def head(self) -> Head:
        """The head of the response; raises what keeps it from coming."""
        while self._head is None:
            await self._more()
        return self._head

    async def read(self) -> bytes:
        """What has come of the body since; empty at its end. Raises what ends it before."""
        while not self._chunks:
            if self._is_done:
                return b""
            await self._more()
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self._chunks, self._held = [], 0
        if self._is_paused:
            self._feed_more()
        return data

    @property
    def is_done(self) -> bool:
        """Whether all of the response has come."""
        return self._is_done

    def when_done(self, seconds: float, then: Callable[[], None]) -> None:
        """Call this when all of the response has come, of which nobody reads more, or it took longer than that."""
        if self._watch is not None:
            self._watch.cancel()
        self._then, self._patience_seconds = then, None
        self._watch = self._loop.call_later(seconds, self._settle)

    def _settle(self) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()

    def end(self) -> bool:
        """The request is over; whether the connection can be used for another."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._is_done and self._keeps and not self._unfed and self._lost is None and self._is_sent:
            self._parser = None
            self._resume()
            return True
        self.abort()
        return False

    @property
    def _is_sent(self) -> bool:
        """Whether nothing is left of the request: a peer may answer, and refuse it, before it has read all."""
        return all(each is None or each.get_write_buffer_size() == 0 for each in (self._transport, self._wire))

    def abort(self) -> None:
        """Close the connection at once."""
        self._parser, self._unfed = None, b""
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_fresh(self) -> bool:
        """Whether the peer has not closed it, as far as can be seen, while nobody used it."""
        if self._lost is not None or self._transport is None or self._transport.is_closing():
            return False
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    async def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Go on with TLS: from the beginning, or through the tunnel that was opened."""
        self._parser = None
        if self._transport is None:
            raise HungUpError("the connection was closed")
        self._transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._wire = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:  # nobody has asked for anything
            self.abort()
        elif len(data) <= _FED_BYTES and not self._unfed:
            self._feed(data)
            if self._held > _HELD_BYTES:
                self._pause()
        else:
            self._unfed += data
            self._pause()
            self._feed_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = (exc,)
        if not self._unfed:
            self._ended()

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._is_paused = True

    def _resume(self) -> None:
        if self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._is_paused = False

    def _feed_more(self) -> None:
        """Take the next of what has come, if there is room for it, and the rest in the next turn."""
        if self._parser is None or self._held > _HELD_BYTES:
            return
        if self._unfed:
            data, self._unfed = self._unfed[:_FED_BYTES], self._unfed[_FED_BYTES:]
            self._feed(data)
            self._loop.call_soon(self._feed_more)
        elif self._lost is not None:
            self._ended()
        else:
            self._resume()

    def _feed(self, data: bytes) -> None:
        if self._patience_seconds is not None:
            self._last = self._loop.time()
            self._spared = 0
        self._bare += len(data)
        try:
            if self._parser is not None:
                self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._keeps = False
            if not self._is_done:
                self._fail(NoHttpError(f"The response is no proper HTTP: {error}"))
        if self._bare > MAX_HEAD_BYTES:
            self._fail(NoHttpError(f"The head of the response has more than {MAX_HEAD_BYTES:,} bytes"))

    def _ended(self) -> None:
        if self._parser is None or self._is_done:
            return
        cause = self._lost[0] if self._lost is not None else None
        if self._head is None:
            said = f": {cause}" if cause is not None else ""
            self._fail(HungUpError(f"it closed the connection without a response{said}"))
        elif "content-length" not in self._headers and "transfer-encoding" not in self._headers and cause is None:
            self._is_done = True
            self._wake()
        else:
            self._fail(BrokenOffError(f"the peer closed the connection{f': {cause}' if cause is not None else ''}"))

    # What the parser tells

    def on_message_begin(self) -> None:
        if self._is_done:
            self._keeps = False  # it goes on after the end

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_done or self._parser is None:
            return
        status = self._parser.get_status_code()
        if status < 200:  # the response itself is still to come
            self._headers = {}
            return
        self._head = Head(status, self._headers)
        self._wake()

    def on_body(self, body: bytes) -> None:
        if not self._is_done:
            self._bare = 0
            self._chunks.append(body)
            self._held += len(body)
            self._wake()

    def on_message_complete(self) -> None:
        if self._head is not None and not self._is_done and self._parser is not None:
            self._is_done = True
            self._keeps = self._parser.should_keep_alive()
            self._wake()

    # Waiting

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._then is not None and (self._is_done or self._error is not None or self._held > MAX_HEAD_BYTES):
            self._loop.call_soon(self._settle)  # the parser is still at work

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error, self._keeps, self._unfed = error, False, b""
            self._wake()

    def _look(self, due: float) -> None:
        """Whether it has been silent for too long; a silence of which we know late is spared."""
        patience = self._patience_seconds
        if patience is None or self._is_done or self._error is not None:
            return
        now = self._loop.time()
        left = self._last + patience - now
        if left <= 0:
            left = spared_seconds(late_seconds=now - due, patience_seconds=patience, times_spared=self._spared)
            self._spared += 1
        if left <= 0 and not self._chunks:
            self._fail(SilenceError(f"it sent nothing for {patience:g} seconds"))
            return
        self._watch = self._loop.call_later(max(left, 0.01), self._look, now + max(left, 0.01))
