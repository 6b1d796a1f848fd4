"""A model's text, told apart into the channels analysis, commentary and final.

Three forms are understood. Plain text is `final`. Markers (`[ANALYSIS]`, `[COMMENTARY]`, `[FINAL]`, in any case) at
the start of a line turn the text after them over to their channel. A text that is one JSON object with the keys
`analysis`, `commentary`, `final`, `continue`, `continuation` and no other brings the channels as its values. What
stands before any of these within `<think>` and `</think>` is `analysis`.

The text may arrive in chunks split anywhere: the outcome depends on the text alone. Text is held back only while it
may still turn out to be a marker or the JSON form. The work is linear in the length of the text, little for text that
has no markers in it, and no text makes the parser raise. After some hundred markers and fences, or ten thousand
places where one could be, nothing is a marker: a text of 1 MiB takes a few milliseconds, whatever is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.channel_markers import MARKER, Channel, MarkerScanner, looked_at, starts_of
from ai_whisperer.core.reasoning_tags import LoneCloserScanner, ReasoningScanner
from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import StateError


class ChannelDelta(msgspec.Struct, frozen=True):
    """The next piece of one channel's text.

    If it `reclassifies`, all that came before it, in any channel, is reasoning and belongs to `analysis`.
    """

    channel: Channel
    text: str
    reclassifies: bool = False


class ParsedAnswer(Record, frozen=True, kw_only=True):
    """A whole answer: its channels, and whether the model asked to be continued."""

    response: ChannelResponse
    wants_continuation: bool


def parse(text: str) -> ParsedAnswer:
    """Tell the channels of a whole text apart, without blank edges.

    Feeding it to a `ChannelParser` in any chunks brings the same.
    """
    if _is_plain(text):
        return ParsedAnswer(response=ChannelResponse(final=text.strip()), wants_continuation=False)
    whole = parse_as_written(text)
    return replace(whole, response=_trimmed(whole.response))


def parse_as_written(text: str) -> ParsedAnswer:
    """Tell the channels apart and keep the blanks at their edges, as a part of an answer needs them."""
    parser = ChannelParser()
    parser.feed(text)
    parser.finish()
    return parser.as_written


def _is_plain(text: str) -> bool:
    """Whether all of the text is `final` and no tag of reasoning is in it: nearly all texts are so."""
    if "<think" in text or "</think" in text or ("[" in text and MARKER.search(text, 0, looked_at(text)[0])):
        return False
    return not (text.lstrip(_JSON_BLANKS)[:1] in _JSON_STARTS and _Opening().read(text) is _Form.JSON)


def _trimmed(response: ChannelResponse) -> ChannelResponse:
    return ChannelResponse(
        analysis=response.analysis.strip(), commentary=response.commentary.strip(), final=response.final.strip()
    )


class _Parser:
    """Tells the channels apart while the text arrives, for `ChannelParser`."""

    def __init__(self) -> None:
        self._reasoning = ReasoningScanner()
        self._opening = _Opening()
        self._held: list[str] = []
        self._scanner = MarkerScanner()
        self._pieces: dict[Channel, list[str]] = {channel: [] for channel in Channel}
        self._current: Channel | None = None
        self._parsed: ParsedAnswer | None = None

    @property
    def began_with_reasoning(self) -> bool:
        return self._reasoning.opened

    def feed(self, chunk: str) -> list[ChannelDelta]:
        """Take the next chunk; return what it settles."""
        reasoning, chunk = self._reasoning.feed(chunk)
        deltas = self._deliver([(Channel.ANALYSIS, reasoning)]) if reasoning else []
        return deltas + self._feed(chunk) if chunk else deltas

    def _feed(self, chunk: str) -> list[ChannelDelta]:
        if self._opening.form is not _Form.PLAIN:
            self._held.append(chunk)
            if self._opening.read(chunk) is not _Form.PLAIN:
                return []
            chunk = self._release()
        return self._deliver(self._scanner.feed(chunk))

    def finish(self) -> list[ChannelDelta]:
        """Take the end of the text; return what was still held back."""
        reasoning, rest = self._reasoning.finish()
        begun = self._deliver([(Channel.ANALYSIS, reasoning)]) + self._feed(rest)
        held = self._release()
        form = _json_form(held) if self._opening.form is _Form.JSON else None
        if form is None:
            deltas = self._deliver(self._scanner.feed(held) + self._scanner.finish())
            wants_continuation = self._scanner.wants_continuation
        else:
            values, wants_continuation = form
            deltas = self._deliver(values.items())
        texts = {channel: "".join(pieces) for channel, pieces in self._pieces.items()}
        self._pieces.clear()
        self._parsed = ParsedAnswer(response=ChannelResponse(**texts), wants_continuation=wants_continuation)
        return begun + deltas

    @property
    def as_written(self) -> ParsedAnswer:
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


class ChannelParser:
    """Tells the channels apart while the text arrives: `feed` each chunk, `finish` once, then read `parsed`.

    The deltas of a channel, joined and stripped, are its text in `parsed`. Pieces of a channel that others interrupt
    are kept on lines of their own. Reasoning whose opening tag is missing cannot be known before its end: a delta that
    `reclassifies` says then what the ones before it were.
    """

    def __init__(self) -> None:
        self._parser = _Parser()
        self._closer: LoneCloserScanner | None = LoneCloserScanner()
        self._reasoning = ""
        self._is_finished = False

    def feed(self, chunk: str) -> list[ChannelDelta]:
        """Take the next chunk; return what it settles."""
        if self._is_finished:
            raise StateError("The text is already finished. Use a new ChannelParser for each answer.")
        if self._closer is None:
            return self._parser.feed(chunk)
        return self._settled(self._closer, self._closer.feed(chunk))

    def finish(self) -> list[ChannelDelta]:
        """Take the end of the text; return what was still held back."""
        if self._is_finished:
            return []
        self._is_finished = True
        deltas = [] if self._closer is None else self._settled(self._closer, self._closer.finish())
        return deltas + self._parser.finish()

    @property
    def parsed(self) -> ParsedAnswer:
        """The whole answer, its channels without blank edges."""
        whole = self.as_written
        return replace(whole, response=_trimmed(whole.response))

    @property
    def as_written(self) -> ParsedAnswer:
        """The whole answer, its channels with the blanks at their edges."""
        parsed = self._parser.as_written
        if not self._reasoning:
            return parsed
        analysis = "\n".join(filter(None, (self._reasoning.strip(), parsed.response.analysis)))
        return replace(parsed, response=replace(parsed.response, analysis=analysis))

    def _settled(self, closer: LoneCloserScanner, text: str) -> list[ChannelDelta]:
        """What the text brings that the scanner has let through: up to the closing tag, if that has come."""
        deltas = self._parser.feed(text)
        if closer.reasoning is None:
            if closer.is_over or self._parser.began_with_reasoning:
                self._closer = None
                deltas += self._parser.feed(closer.let_go())
            return deltas
        held = "".join(delta.text for delta in deltas + self._parser.finish())
        self._reasoning, self._parser, self._closer = closer.reasoning, _Parser(), None
        return [ChannelDelta(Channel.ANALYSIS, held, reclassifies=True), *self._parser.feed(closer.rest)]


_JSON_BLANKS = " \t\r\n"
_JSON_STARTS = ("{", "`")
_JSON_BLANKS_OR_CHAR = re.compile(r"[ \t\r\n]+|[^ \t\r\n]")
_CONTINUATION_KEYS = ("continue", "continuation")
_KEYS = (*Channel, *_CONTINUATION_KEYS)
_MAX_DECODED_CHARACTERS = 16 << 10
"""A value of the JSON form that is no text is written anew up to this length; a longer one stays as it was written."""
_FIELDS = {key: f"{key}_" if key == "continue" else str(key) for key in _KEYS}
_NOTHING = msgspec.Raw()


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
    _STARTS = starts_of(_LISTED)

    def __init__(self) -> None:
        self.form = _Form.UNDECIDED
        self._read = ""

    def read(self, chunk: str) -> _Form:
        for found in _JSON_BLANKS_OR_CHAR.finditer(chunk) if self.form is _Form.UNDECIDED else ():
            char = found[0]
            if char[0] not in _JSON_BLANKS:
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


class _Written(msgspec.Struct, forbid_unknown_fields=True, rename={"continue_": "continue"}):
    """The JSON form with its values as they were written: taking these apart may take long."""

    analysis: msgspec.Raw = _NOTHING
    commentary: msgspec.Raw = _NOTHING
    final: msgspec.Raw = _NOTHING
    continue_: msgspec.Raw = _NOTHING
    continuation: msgspec.Raw = _NOTHING


_WRITTEN = msgspec.json.Decoder(_Written)


def _json_form(text: str) -> tuple[dict[Channel, str], bool] | None:
    """The texts of the channels, and whether the model asks to be continued; None if the text is not of that form."""
    text = text.strip(_JSON_BLANKS)
    if text.startswith("```"):
        if not text.endswith("```"):
            return None
        text = text[len("```json") : -len("```")]
    try:
        value = _values(text)
        if not isinstance(value, dict) or not value.keys() <= set(_KEYS) or value.keys().isdisjoint(Channel):
            return None
        texts = {channel: _text_of(value.get(channel)) for channel in Channel}
    except (ValueError, RecursionError):
        # Not JSON, or nested deeper than the decoder goes: either way it was not meant as channels.
        return None
    return texts, any(_asks_to_continue(value.get(key)) for key in _CONTINUATION_KEYS)


def _values(text: str) -> Any:
    """The values of an object, the long ones that are no text as the text that they were written as."""
    if len(text) <= _MAX_DECODED_CHARACTERS:
        return json.loads(text)
    written = _WRITTEN.decode(text)
    given = {key: bytes(getattr(written, name)).decode() for key, name in _FIELDS.items()}
    return {
        key: json.loads(value) if value[0] == '"' or len(value) <= _MAX_DECODED_CHARACTERS else value
        for key, value in given.items()
        if value
    }


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    return mended(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False))


def _asks_to_continue(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.get("status")
    return value is True or (isinstance(value, str) and value.strip().lower() == "continue")
