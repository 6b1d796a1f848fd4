"""The channels of a text that has markers in it, while it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cache, lru_cache

from ai_whisperer.late_pattern import late_pattern


class Channel(StrEnum):
    ANALYSIS = "analysis"
    COMMENTARY = "commentary"
    FINAL = "final"


def starts_of(texts: Iterable[str]) -> frozenset[str]:
    """All that one of these texts may begin with."""
    return frozenset(text[:length] for text in texts for length in range(1, len(text) + 1))


_BLANKS = " \t\r"
_CONTINUE = "[continue]"
_OPENERS = {f"[{channel}]": channel for channel in Channel}
_CLOSERS = {channel: f"[/{channel}]" for channel in Channel}
_MARKER_STARTS = starts_of([*_OPENERS, *_CLOSERS.values(), _CONTINUE])
_CLOSING_STARTS = {channel: starts_of([closing]) for channel, closing in _CLOSERS.items()}
_LINE_END_OR_BACKTICK = late_pattern(r"[\n`]")
_BLANK_RUN = late_pattern(r"[ \t\r]+")
_BACKTICK_RUN = late_pattern(r"`+")
_FENCE_LENGTH = 3
_MAX_TURNS = 500
"""So many markers and fences are looked at."""
_SLICE = 1 << 14
_MAX_PLACES = 10_000
"""So many places are looked at where there could be one: line ends, brackets and backticks. Each takes its time."""

# What a line may begin with that has to be looked at, also if it is cut off at the end of the chunk.
_NAMES = "|".join(Channel)
_START_OF_NOTE = rf"[ \t\r]*(?:`{{{_FENCE_LENGTH}}}|`*\Z|\[(?:(?:/?(?:{_NAMES})|{_CONTINUE[1:-1]})\]|[/a-z]{{0,11}}\Z))"
MARKER = late_pattern(rf"\[(?:/?(?:{_NAMES})|{_CONTINUE[1:-1]})\]", re.IGNORECASE)
"""A text without any is plain, wherever its lines begin."""
_LINE_OF_NOTE = late_pattern(_START_OF_NOTE, re.IGNORECASE)
_NEXT_LINE_OF_NOTE = late_pattern(rf"\n(?={_START_OF_NOTE})", re.IGNORECASE)


@cache
def _next_of_note(channel: Channel) -> re.Pattern[str]:
    """In the channel that a marker opened: the closing marker too, wherever it stands."""
    return re.compile(rf"\[(?=/{channel}\]|[/a-z]{{0,11}}\Z)|\n(?={_START_OF_NOTE})", re.IGNORECASE)


@lru_cache(maxsize=16)
def _next_line_of_fence(backticks: int) -> re.Pattern[str]:
    """The end of a line after which the fence may end."""
    return re.compile(rf"\n(?=[ \t\r]*(?:`{{{backticks}}}|`*\Z))")


def looked_at(text: str, places_before: int = 0) -> tuple[int, int]:
    """How far into the text markers count if so many places came before it, and how many places there are by then."""
    places = places_before
    for at in range(0, len(text), _SLICE):  # a text that is full of places is not read to its end
        there = _places(text, at, at + _SLICE)
        if places + there > _MAX_PLACES:
            return _after(text, at, _MAX_PLACES - places), _MAX_PLACES
        places += there
    return len(text), places


def _after(text: str, begin: int, places: int) -> int:
    """Where the place is that follows so many after the beginning; there is one in the slice."""
    end = min(begin + _SLICE, len(text))
    while end - begin > 1:
        middle = (begin + end) // 2
        before = _places(text, begin, middle)
        if before > places:
            end = middle
        else:
            begin, places = middle, places - before
    return begin


def _places(text: str, begin: int, end: int) -> int:
    return text.count("\n", begin, end) + text.count("[", begin, end) + text.count("`", begin, end)


class MarkerScanner:
    """Tells the channels of marked text apart. Each state is a method that reads on from a place in the chunk.

    A marker counts at the start of a line and directly after another marker. The closing marker of the channel that
    a marker opened counts anywhere in a line, because models write `[FINAL]Done.[/FINAL]`. In a code fence nothing
    counts but the end of the fence.
    """

    def __init__(self) -> None:
        self.wants_continuation = False
        self._state: Callable[[MarkerScanner, str, int], int] = MarkerScanner._line_start
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
        self._turns = 0
        self._places = 0

    def feed(self, text: str) -> list[tuple[Channel, str]]:
        end, self._places = looked_at(text, self._places)
        if end < len(text):
            self._read(text[:end])
            self._state = MarkerScanner._rest_as_it_is
            self._read(text[end:])
        else:
            self._read(text)
        return self._take()

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text):
            at = self._state(self, text, at)

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
        if not self._held and not _LINE_OF_NOTE.match(text, at):
            self._state = MarkerScanner._line_rest
            return at
        char = text[at]
        if blanks := _BLANK_RUN.match(text, at):
            self._held.append(blanks[0])
            return blanks.end()
        if char == "[":
            return self._begin_tag(_MARKER_STARTS, at)
        if char == "\n":
            return self._end_bare_line(at)
        self._emit_held()
        self._backticks = 0
        self._state = MarkerScanner._fence_start if char == "`" else MarkerScanner._line_rest
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
        self._state = MarkerScanner._in_tag
        return at + 1

    def _in_tag(self, text: str, at: int) -> int:
        tag = self._tag + text[at]
        marker = tag.lower()
        if marker not in self._tag_starts:
            self._emit_held()
            self._state = MarkerScanner._line_rest
            return at
        self._tag = tag
        if marker.endswith("]"):
            self._end_tag(marker)
        return at + 1

    def _end_tag(self, marker: str) -> None:
        self._turn_to(MarkerScanner._line_start)
        if marker == _CONTINUE:
            self._held.append(self._tag)
            self._tag = ""
            self._continue_held = True
            return
        self._drop_held()
        self._line_is_fresh = False
        self._opened = marker in _OPENERS
        self._channel = _OPENERS.get(marker, Channel.FINAL)

    def _turn_to(self, state: Callable[[MarkerScanner, str, int], int]) -> None:
        """A marker or a fence has come; after too many of them the rest of the text is taken as it is."""
        self._turns += 1
        self._state = state if self._turns < _MAX_TURNS else MarkerScanner._rest_as_it_is

    def _rest_as_it_is(self, text: str, at: int) -> int:
        self._emit_held()
        self._emit(text[at:])
        return len(text)

    def _line_rest(self, text: str, at: int) -> int:
        """In a line with nothing to note at its start: the next one that may have is looked for."""
        found = (_next_of_note(self._channel) if self._opened else _NEXT_LINE_OF_NOTE).search(text, at)
        if found is None:
            self._emit(text[at:])
            return len(text)
        end = found.start()
        if text[end] == "[":
            self._emit(text[at:end])
            return self._begin_tag(_CLOSING_STARTS[self._channel], end)
        return self._end_line(text, at, end)

    def _end_line(self, text: str, at: int, end: int) -> int:
        self._emit(text[at : end + 1])
        self._line_is_fresh = True
        self._state = MarkerScanner._line_start
        return end + 1

    def _fence_start(self, text: str, at: int) -> int:
        if backticks := _BACKTICK_RUN.match(text, at):
            self._backticks += len(backticks[0])
            self._emit(backticks[0])
            return backticks.end()
        fences = self._backticks >= _FENCE_LENGTH
        self._state = MarkerScanner._fence_info if fences else MarkerScanner._line_rest
        return at

    def _fence_info(self, text: str, at: int) -> int:
        found = _LINE_END_OR_BACKTICK.search(text, at)
        end = found.end() if found else len(text)
        self._emit(text[at:end])
        if found and found[0] == "`":
            # Backticks on both sides are code within a line, not a fence.
            self._state = MarkerScanner._line_rest
        elif found:
            self._fence, self._backticks = self._backticks, 0
            self._turn_to(MarkerScanner._code_start)
        return end

    def _code_start(self, text: str, at: int) -> int:
        """At the start of a line in a fence: blanks, then backticks that may end the fence."""
        run = _BACKTICK_RUN.match(text, at)
        if run is not None:
            self._backticks += len(run[0])
        elif not self._backticks:
            run = _BLANK_RUN.match(text, at)
        if run is None:
            ends = self._backticks >= self._fence
            self._state = MarkerScanner._fence_end if ends else MarkerScanner._code_rest
            return at
        self._emit(run[0])
        return run.end()

    def _code_rest(self, text: str, at: int) -> int:
        found = _next_line_of_fence(self._fence).search(text, at)
        end = found.end() if found else len(text)
        self._emit(text[at:end])
        if found:
            self._backticks = 0
            self._state = MarkerScanner._code_start
        return end

    def _fence_end(self, text: str, at: int) -> int:
        if text[at] == "\n":
            return self._end_line(text, at, at)
        if text[at] not in _BLANKS:
            self._state = MarkerScanner._code_rest
            return at
        self._emit(text[at])
        return at + 1
