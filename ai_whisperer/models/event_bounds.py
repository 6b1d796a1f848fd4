"""The body of a provider's answer cut into whole events, none of which is larger than can be read in one go.

What reads the events may spend time on each and cannot be interrupted in it, so an event is bounded in its size and in
how much there is in it to look at. Events are server-sent ones (an empty line ends each), or lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

MAX_EVENT_BYTES = 1 << 20
"""The whole answer may come as one event; that of most providers has a few hundred bytes."""
MAX_EVENT_VALUES = 10_000
"""So many values an event may have: the description of two hundred tools, which a provider may repeat."""
MAX_EVENT_LINES = 1_000
"""So many lines an event may have; nearly all have one."""
MAX_BARE_BYTES_IN_EVENT = 256 << 10
"""So much there may be beside the texts of an event: numbers of many digits take long."""
MAX_CHOICES = 64
"""So many answers, or parts of tool calls, an event of the chat completions protocol may have."""
PIECE_BYTES = 2 << 10
"""Small events are passed on together, up to about so many bytes."""

_LOOKED_INTO_BYTES = 512
_QUOTES_PER_VALUE = 4
"""A value has a name and may be a text."""
_EVENT_END = re.compile(rb"\r\n\r\n|\n\r\n|\r\n\n|\n\n|\r\r|\n\r(?!\n)")
_LONGEST_END = 4


class EventTooLargeError(Exception):
    """An event is larger than anybody can want."""


class _Delta(msgspec.Struct):
    tool_calls: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None


_CHUNK = msgspec.json.Decoder(_Chunk)


class EventCutter:
    """Cuts a body into pieces of whole events: `feed` what arrives, `finish` at its end.

    Raises `EventTooLargeError` as soon as it is known. Holds no more than one event.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self._lines = lines
        self.held = bytearray()
        """The beginning of an event whose end has not come."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """The whole events that there are by now, in pieces."""
        if not self.held and len(data) <= _LOOKED_INTO_BYTES and data.endswith(b"\n\n"):
            return (data,)
        return self._cut(data)

    def _cut(self, data: bytes) -> Iterator[bytes]:
        looked_at = max(len(self.held) - _LONGEST_END + 1, 0)
        self.held += data
        begin = end = 0
        for place in self._ends(looked_at):
            if place - end > _LOOKED_INTO_BYTES:
                _check(bytes(self.held[end:place]))
            end = place
            if end - begin >= PIECE_BYTES:
                yield bytes(self.held[begin:end])
                begin = end
        if end > begin:
            yield bytes(self.held[begin:end])
        del self.held[:end]
        if len(self.held) > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"an event has more than {MAX_EVENT_BYTES:,} bytes")

    def finish(self) -> Iterator[bytes]:
        """What is left at the end: an event that nothing ends."""
        if self.held:
            _check(bytes(self.held))
            yield bytes(self.held)
            self.held.clear()

    def _ends(self, begin: int) -> Iterator[int]:
        if self._lines:
            while (found := self.held.find(b"\n", begin)) >= 0:
                begin = found + 1
                yield begin
        else:
            # The places are found first: while an iterator looks into the bytes they cannot be changed.
            yield from [found.end() for found in _EVENT_END.finditer(self.held, begin)]


def _check(event: bytes) -> None:
    if len(event) > MAX_EVENT_BYTES:
        raise EventTooLargeError(f"an event has more than {MAX_EVENT_BYTES:,} bytes")
    if event.count(b"\n") + event.count(b"\r") > MAX_EVENT_LINES:
        raise EventTooLargeError(f"an event has more than {MAX_EVENT_LINES:,} lines")
    count = values_in(event)
    if count > MAX_CHOICES and _most_choices(event) > MAX_CHOICES:
        raise EventTooLargeError(f"an event has more than {MAX_CHOICES:,} answers or tool calls")


def values_in(document: bytes) -> int:
    """About how many values there are in a JSON document; raises `EventTooLargeError` if it takes long to read.

    The work is linear, whatever the document, and next to nothing for a text that is not escaped.
    """
    count = _marks(document)
    if count <= MAX_EVENT_VALUES and len(document) <= MAX_BARE_BYTES_IN_EVENT:
        return count
    if b"\\" in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    if document.count(b'"') > _QUOTES_PER_VALUE * (MAX_EVENT_VALUES + 1):
        raise EventTooLargeError(f"an event has more than {MAX_EVENT_VALUES:,} values")
    bare = b"".join(document.split(b'"')[::2])
    count = _marks(bare)
    if count > MAX_EVENT_VALUES:
        raise EventTooLargeError(f"an event has more than {MAX_EVENT_VALUES:,} values")
    if len(bare) > MAX_BARE_BYTES_IN_EVENT:
        raise EventTooLargeError(f"an event has more than {MAX_BARE_BYTES_IN_EVENT:,} bytes beside its texts")
    return count


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _most_choices(event: bytes) -> int:
    """How many answers or tool calls there are in an event of chat completions; 0 for any other."""
    try:
        choices = _CHUNK.decode(event[event.index(b"{") :].rstrip()).choices or []
    except (ValueError, msgspec.DecodeError, RecursionError):
        return 0
    calls = [len(choice.delta.tool_calls or ()) for choice in choices[:MAX_CHOICES] if choice.delta is not None]
    return max(len(choices), *calls, 0)
