"""The answers that clients of httpx or httpx2 get, bounded before they or their users read them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

from ai_whisperer.models.bounded_body import (
    ENCODINGS,
    MAX_ERROR_BYTES,
    BodyCutter,
    Meter,
    WireLimitError,
    inflater_of,
)
from ai_whisperer.models.bounded_reads import bound_reads, bound_trailers
from ai_whisperer.models.event_bounds import EventTooLargeError

current_meter: ContextVar[Meter | None] = ContextVar("current_meter", default=None)
"""The meter of the answer that is being asked for."""


def bound(client: Any) -> None:
    """Bound every response of an asynchronous client of httpx or httpx2."""
    bound_reads(client)
    client.headers["Accept-Encoding"] = ENCODINGS
    hooks = client.event_hooks
    client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), _bound_response]}


async def _bound_response(response: Any) -> None:
    bound_trailers(response)
    encoding = response.headers.get("content-encoding", "")
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
        self._lines = lines
        self._meter = current_meter.get() or Meter()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self._is_error:
                async with aclosing(self._start()) as start:
                    async for piece in start:
                        yield piece
                return
            cutter = BodyCutter(self._meter, encoding=self._encoding, lines=self._lines)
            # Not in a generator of its own: each one on the way takes its time for each event.
            async with aclosing(aiter(self._pieces)) as pieces:
                async for data in pieces:
                    for events in cutter.feed(data):
                        if self._meter.turn_is_over:
                            await self._meter.let_others()
                        if events:
                            yield events
                    await self._meter.let_others()
            for events in cutter.finish():
                yield events
        except (WireLimitError, EventTooLargeError) as error:
            raise self.error_class(str(error)) from None

    async def aclose(self) -> None:
        await self._pieces.aclose()

    async def _start(self) -> AsyncGenerator[bytes, None]:
        inflater, left = inflater_of(self._encoding), MAX_ERROR_BYTES
        async with aclosing(aiter(self._pieces)) as pieces:
            async for data in pieces:
                for piece in (data,) if inflater is None else inflater.feed(data):
                    yield piece[:left]
                    left -= len(piece)
                    if left <= 0:
                        return


@cache
def _body_class(package: str) -> Any:
    """The body for responses of httpx or of httpx2, whose errors their users take for those of the network."""
    library = import_module(package)
    error = type("WireError", (WireLimitError, library.RequestError), {})
    return type("Body", (BoundedBody, library.AsyncByteStream), {"error_class": error})
