"""A model's text, told apart into the channels analysis, commentary and final.

Three forms are understood. Plain text is `final`. Markers (`[ANALYSIS]`, `[COMMENTARY]`, `[FINAL]`, in any case) at
the start of a line turn the text after them over to their channel. A text that is one JSON object with the keys
`analysis`, `commentary`, `final`, `continue`, `continuation` and no other brings the channels as its values.

The text may arrive in chunks split anywhere: the outcome depends on the text alone. Text is held back only while it
may still turn out to be a marker or the JSON form. The work is linear in the length of the text, and no text makes
the parser raise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from ai_whisperer.base_record import Record
from ai_whisperer.conversation import ChannelResponse
from ai_whisperer.core.text import mended
from ai_whisperer.errors import StateError


class Channel(StrEnum):
    ANALYSIS = "analysis"
    COMMENTARY = "commentary"
    FINAL = "final"


class ChannelDelta(msgspec.Struct, frozen=True):
    """The next piece of one channel's text."""

    channel: Channel
    text: str


class ParsedAnswer(Record, frozen=True, kw_only=True):
    """A whole answer: its channels without blank edges, and whether the model asked to be continued."""

    response: ChannelResponse
    wants_continuation: bool


def parse(text: str) -> ParsedAnswer:
    """Tell the channels of a whole text apart. Feeding it to a `ChannelParser` in any chunks brings the same."""
    if "[" not in text and "{" not in text:
        return ParsedAnswer(response=ChannelResponse(final=text.strip()), wants_continuation=False)
    parser = ChannelParser()
    parser.feed(text)
    parser.finish()
    return parser.parsed


class ChannelParser:
    """Tells the channels apart while the text arrives: `feed` each chunk, `finish` once, then read `parsed`.

    The deltas of a channel, joined and stripped, are its text in `parsed`. Pieces of a channel that others interrupt
    are kept on lines of their own.
    """

    def __init__(self) -> None:
        self._opening = _Opening()
        self._held: list[str] = []
        self._scanner = _MarkerScanner()
        self._pieces: dict[Channel, list[str]] = {channel: [] for channel in Channel}
        self._current: Channel | None = None
        self._parsed: ParsedAnswer | None = None

    def feed(self, chunk: str) -> list[ChannelDelta]:
        """Take the next chunk; return what it settles."""
        if self._parsed is not None:
            raise StateError("The text is already finished. Use a new ChannelParser for each answer.")
        if self._opening.form is not _Form.PLAIN:
            self._held.append(chunk)
            if self._opening.read(chunk) is not _Form.PLAIN:
                return []
            chunk = self._release()
        return self._deliver(self._scanner.feed(chunk))

    def finish(self) -> list[ChannelDelta]:
        """Take the end of the text; return what was still held back."""
        if self._parsed is not None:
            return []
        held = self._release()
        values = _json_form(held) if self._opening.form is _Form.JSON else None
        if values is None:
            deltas = self._deliver(self._scanner.feed(held) + self._scanner.finish())
            wants_continuation = self._scanner.wants_continuation
        else:
            deltas = self._deliver((channel, values.texts[channel]) for channel in Channel)
            wants_continuation = values.wants_continuation
        texts = {channel: "".join(pieces).strip() for channel, pieces in self._pieces.items()}
        self._pieces.clear()
        self._parsed = ParsedAnswer(response=ChannelResponse(**texts), wants_continuation=wants_continuation)
        return deltas

    @property
    def parsed(self) -> ParsedAnswer:
        if self._parsed is None:
            raise StateError("The text is not finished. Call finish() before reading the parsed answer.")
        return self._parsed

    def _release(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        return held

    def _deliver(self, pieces: Iterable[tuple[Channel, str]]) -> list[ChannelDelta]:
        deltas = []
        for channel, group in groupby(pieces, key=itemgetter(0)):
            text = "".join(piece for _, piece in group)
            if not text:
                continue
            before = self._pieces[channel]
            if channel is not self._current and before and not (before[-1][-1] == "\n" or text[0] == "\n"):
                text = "\n" + text
            self._current = channel
            before.append(text)
            deltas.append(ChannelDelta(channel, text))
        return deltas


_JSON_BLANKS = " \t\r\n"
_CONTINUATION_KEYS = ("continue", "continuation")
_KEYS = (*Channel, *_CONTINUATION_KEYS)


def _starts(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(text[:length] for text in texts for length in range(1, len(text) + 1))


class _Form(Enum):
    UNDECIDED = 1
    JSON = 2
    PLAIN = 3


class _Opening:
    """Reads the start of a text until it is plain, or an object whose first key belongs to the JSON form.

    It remembers what it read with each run of blanks as one space and none at the start. There are few openings of
    the JSON form in that spelling, so they are listed.
    """

    _LISTED = frozenset(
        f'{fence}{{{gap}"{key}"' for fence in ("", "```json ", "```JSON ") for gap in ("", " ") for key in _KEYS
    )
    _STARTS = _starts(_LISTED)

    def __init__(self) -> None:
        self.form = _Form.UNDECIDED
        self._read = ""

    def read(self, chunk: str) -> _Form:
        for char in chunk if self.form is _Form.UNDECIDED else "":
            if char not in _JSON_BLANKS:
                self._read += char
            elif self._read and self._read[-1] != " ":
                self._read += " "
            if self._read and self._read not in self._STARTS:
                self.form = _Form.PLAIN
                break
            if self._read in self._LISTED:
                self.form = _Form.JSON
                break
        return self.form


class _JsonForm(msgspec.Struct, frozen=True):
    texts: Mapping[Channel, str]
    wants_continuation: bool


def _json_form(text: str) -> _JsonForm | None:
    text = text.strip(_JSON_BLANKS)
    if text.startswith("```"):
        if not text.endswith("```"):
            return None
        text = text[len("```json") : -len("```")]
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or not value.keys() <= set(_KEYS) or value.keys().isdisjoint(Channel):
            return None
        texts = {channel: _text_of(value.get(channel)) for channel in Channel}
    except (ValueError, RecursionError):
        # Not JSON, or nested deeper than the decoder goes: either way it was not meant as channels.
        return None
    return _JsonForm(texts, any(_asks_to_continue(value.get(key)) for key in _CONTINUATION_KEYS))


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    return mended(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False))


def _asks_to_continue(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.get("status")
    return value is True or (isinstance(value, str) and value.strip().lower() == "continue")


_BLANKS = " \t\r"
_CONTINUE = "[continue]"
_OPENERS = {f"[{channel}]": channel for channel in Channel}
_CLOSERS = {channel: f"[/{channel}]" for channel in Channel}
_MARKER_STARTS = _starts([*_OPENERS, *_CLOSERS.values(), _CONTINUE])
_CLOSING_STARTS = {channel: _starts([closing]) for channel, closing in _CLOSERS.items()}
_LINE_END_OR_BRACKET = re.compile(r"[\n\[]")
_LINE_END_OR_BACKTICK = re.compile(r"[\n`]")
_FENCE_LENGTH = 3


class _MarkerScanner:
    """Tells the channels of marked text apart. Each state is a method that reads on from a place in the chunk.

    A marker counts at the start of a line and directly after another marker. The closing marker of the channel that
    a marker opened counts anywhere in a line, because models write `[FINAL]Done.[/FINAL]`. In a code fence nothing
    counts but the end of the fence.
    """

    def __init__(self) -> None:
        self.wants_continuation = False
        self._state: Callable[[_MarkerScanner, str, int], int] = _MarkerScanner._line_start
        self._channel = Channel.FINAL
        self._opened = False
        self._pieces: list[tuple[Channel, str]] = []
        # What stands at a marker's place and may yet vanish with the marker: blanks and `[CONTINUE]`, then the tag.
        self._held: list[str] = []
        self._continue_held = False
        self._tag = ""
        self._tag_starts = _MARKER_STARTS
        self._line_is_fresh = True
        self._backticks = 0
        self._fence = 0

    def feed(self, text: str) -> list[tuple[Channel, str]]:
        at = 0
        while at < len(text):
            at = self._state(self, text, at)
        return self._take()

    def finish(self) -> list[tuple[Channel, str]]:
        if self._continue_held and not self._tag:
            self._drop_held()
        self._emit_held()
        return self._take()

    def _take(self) -> list[tuple[Channel, str]]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _emit(self, text: str) -> None:
        if text:
            self._pieces.append((self._channel, text))

    def _emit_held(self) -> None:
        self._emit("".join(self._held) + self._tag)
        self._continue_held = False
        self._drop_held()

    def _drop_held(self) -> None:
        self.wants_continuation |= self._continue_held
        self._continue_held = False
        self._held.clear()
        self._tag = ""

    def _line_start(self, text: str, at: int) -> int:
        """At the start of a line or directly after a marker: blanks may be followed by a marker or by a fence."""
        char = text[at]
        if char in _BLANKS:
            self._held.append(char)
            return at + 1
        if char == "[":
            return self._begin_tag(_MARKER_STARTS, at)
        if char == "\n":
            return self._end_bare_line(at)
        self._emit_held()
        self._backticks = 0
        self._state = _MarkerScanner._fence_start if char == "`" else _MarkerScanner._line_rest
        return at

    def _end_bare_line(self, at: int) -> int:
        # A line of nothing but `[CONTINUE]` goes as a whole; after text its line end still parts the lines.
        goes = self._continue_held and self._line_is_fresh
        if self._continue_held:
            self._drop_held()
        self._emit_held()
        if not goes:
            self._emit("\n")
        self._line_is_fresh = True
        return at + 1

    def _begin_tag(self, starts: frozenset[str], at: int) -> int:
        self._tag = "["
        self._tag_starts = starts
        self._state = _MarkerScanner._in_tag
        return at + 1

    def _in_tag(self, text: str, at: int) -> int:
        tag = self._tag + text[at]
        marker = tag.lower()
        if marker not in self._tag_starts:
            self._emit_held()
            self._state = _MarkerScanner._line_rest
            return at
        self._tag = tag
        if marker.endswith("]"):
            self._end_tag(marker)
        return at + 1

    def _end_tag(self, marker: str) -> None:
        self._state = _MarkerScanner._line_start
        if marker == _CONTINUE:
            self._held.append(self._tag)
            self._tag = ""
            self._continue_held = True
            return
        self._drop_held()
        self._line_is_fresh = False
        self._opened = marker in _OPENERS
        self._channel = _OPENERS.get(marker, Channel.FINAL)

    def _line_rest(self, text: str, at: int) -> int:
        if self._opened:
            found = _LINE_END_OR_BRACKET.search(text, at)
            end = found.start() if found else -1
        else:
            end = text.find("\n", at)
        if end < 0:
            self._emit(text[at:])
            return len(text)
        if text[end] == "[":
            self._emit(text[at:end])
            return self._begin_tag(_CLOSING_STARTS[self._channel], end)
        return self._end_line(text, at, end)

    def _end_line(self, text: str, at: int, end: int) -> int:
        self._emit(text[at : end + 1])
        self._line_is_fresh = True
        self._state = _MarkerScanner._line_start
        return end + 1

    def _fence_start(self, text: str, at: int) -> int:
        if text[at] == "`":
            self._backticks += 1
            self._emit("`")
            return at + 1
        fences = self._backticks >= _FENCE_LENGTH
        self._state = _MarkerScanner._fence_info if fences else _MarkerScanner._line_rest
        return at

    def _fence_info(self, text: str, at: int) -> int:
        found = _LINE_END_OR_BACKTICK.search(text, at)
        end = found.end() if found else len(text)
        self._emit(text[at:end])
        if found and found[0] == "`":
            # Backticks on both sides are code within a line, not a fence.
            self._state = _MarkerScanner._line_rest
        elif found:
            self._fence, self._backticks = self._backticks, 0
            self._state = _MarkerScanner._code_start
        return end

    def _code_start(self, text: str, at: int) -> int:
        char = text[at]
        if char == "`":
            self._backticks += 1
        elif char not in _BLANKS or self._backticks:
            ends = self._backticks >= self._fence
            self._state = _MarkerScanner._fence_end if ends else _MarkerScanner._code_rest
            return at
        self._emit(char)
        return at + 1

    def _code_rest(self, text: str, at: int) -> int:
        end = text.find("\n", at) + 1 or len(text)
        self._emit(text[at:end])
        if text[end - 1] == "\n":
            self._backticks = 0
            self._state = _MarkerScanner._code_start
        return end

    def _fence_end(self, text: str, at: int) -> int:
        if text[at] == "\n":
            return self._end_line(text, at, at)
        if text[at] not in _BLANKS:
            self._state = _MarkerScanner._code_rest
            return at
        self._emit(text[at])
        return at + 1
