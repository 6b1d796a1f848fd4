"""The body of a provider's answer, bounded before anything of ours or of a client library reads it.

Each event is bounded, and all of the body together: so much, and so much more for each byte of content that is in it.
What is compressed counts as what it is. The event loop has its turn after a few milliseconds of work.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Iterable, Iterator

from ai_whisperer.models.event_bounds import EventCutter

MAX_ERROR_BYTES = 64 << 10
"""So much is read of what a provider says beside an error."""
MAX_BARE_BYTES = 4 << 20
"""So many bytes may come without any content: comments, empty events, what stands around the content."""
MAX_BYTES_PER_BYTE = 512
"""So many more may come for each byte of content."""
MAX_BODY_BYTES = 256 << 20
"""So many may come in all."""
ENCODINGS = "gzip, deflate"
"""The compressions that are asked for, as a header says it."""

_TURN_SECONDS = 0.005
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


class BodyCutter:
    """Makes pieces of whole events of what arrives; raises `WireLimitError` and `EventTooLargeError`.

    Whoever reads the pieces lets others have their turn between them. A piece may be empty: then there is none yet.
    """

    def __init__(self, meter: Meter, *, encoding: str = "", lines: bool = False) -> None:
        self._meter = meter
        self._cutter = EventCutter(lines=lines)
        self._inflater = inflater_of(encoding)

    def feed(self, data: bytes) -> Iterable[bytes]:
        """The whole events that there are by now."""
        if self._inflater is not None:
            return self._inflated(self._inflater, data)
        self._meter.count(len(data))
        return self._cutter.feed(data)

    def finish(self) -> Iterable[bytes]:
        """What is left at the end: an event that nothing ends."""
        return self._cutter.finish()

    def _inflated(self, inflater: Inflater, data: bytes) -> Iterator[bytes]:
        for piece in inflater.feed(data):
            self._meter.count(len(piece))
            yield from self._cutter.feed(piece)
            yield b""


def inflater_of(encoding: str) -> Inflater | None:
    """What undoes that compression, None if there is none; raises `WireLimitError` if it was not asked for."""
    encoding = encoding.strip().lower()
    return None if encoding in _AS_IT_IS else Inflater(encoding)


class Inflater:
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
