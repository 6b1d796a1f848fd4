"""The latest notifications of a session, in memory: bounded in number and in bytes."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification

MAX_NOTES = 2 * 4_096
MAX_BYTES = 8 << 20
"""When there is more than this, half of it is kept."""

PAGE_NOTES = 32
PAGE_BYTES = 48 << 10
"""A reader gets so much at once, but one notification at least."""

NOTE_BYTES = 500
_VALUE_BYTES = 50
"""What a notification, and a value within another, takes beside its texts."""

_SHORT = 200
"""A text from this length on is asked for its size, since its characters may be wide; that takes a little longer."""

_CONTAINERS = frozenset((dict, list, tuple))


class RecentNotes:
    """Notifications whose numbers follow on each other, up to the last one."""

    def __init__(self) -> None:
        self._notes: list[Note | Notification] = []  # one that was read is kept as it was read
        self._ends: list[int] = []  # for each, the bytes of all that there were up to it
        self._begin = 0
        self._end = 0

    def __len__(self) -> int:
        return len(self._notes)

    @property
    def size(self) -> int:
        """About how many bytes are held."""
        return self._end - self._begin

    def extend(self, notes: Sequence[Note | Notification], sizes: Iterable[int]) -> None:
        ends = accumulate(sizes, initial=self._end)
        next(ends)
        self._ends.extend(ends)
        self._notes.extend(notes)
        if self._ends:
            self._end = self._ends[-1]
        if len(self._notes) > MAX_NOTES or self.size > MAX_BYTES:
            self._keep_half()

    def page(self, cursor: int) -> list[Notification] | None:
        """Some of those that follow the cursor, in order; None if not all of them are held any more."""
        if not self._notes or cursor + 1 < self._notes[0].seq:
            return None
        first = cursor + 1 - self._notes[0].seq
        before = self._ends[first - 1] if first else self._begin
        last = bisect_right(self._ends, before + PAGE_BYTES, first, min(first + PAGE_NOTES, len(self._ends)))
        return self._read(first, max(last, first + 1))

    def clear(self) -> None:
        self._drop(len(self._notes))

    def _read(self, first: int, end: int) -> list[Notification]:
        read = [note if isinstance(note, Notification) else note.read() for note in self._notes[first:end]]
        self._notes[first:end] = read
        return read

    def _keep_half(self) -> None:
        too_many = len(self._notes) - MAX_NOTES // 2
        too_large = bisect_left(self._ends, self._end - MAX_BYTES // 2) + 1 if self.size > MAX_BYTES // 2 else 0
        self._drop(max(too_many, too_large))

    def _drop(self, count: int) -> None:
        if count:
            self._begin = self._ends[count - 1]
            del self._notes[:count]
            del self._ends[:count]


def size_of_params(text: str) -> int:
    """About how many bytes a notification takes in memory whose params are this JSON text; rather more than less.

    Whoever has the text at hand is told sooner by it than by `size_of`.
    """
    length = len(text) if text.isascii() else sys.getsizeof(text)
    return NOTE_BYTES + length + _VALUE_BYTES * text.count(",")


def size_of(note: Notification) -> int:
    """About how many bytes the notification takes in memory."""
    size = NOTE_BYTES
    for value in note.params.values():
        kind = type(value)
        if kind is str:
            length = len(value)
            size += length if length < _SHORT else sys.getsizeof(value)
        elif kind in _CONTAINERS:
            size += _nested(value)
    return size


def _nested(whole: Any) -> int:
    size = 0
    waiting = [whole]
    while waiting:
        values = waiting.pop()
        size += _VALUE_BYTES * len(values)
        for value in chain(values, values.values()) if type(values) is dict else values:
            kind = type(value)
            if kind is str:
                size += len(value) if len(value) < _SHORT else sys.getsizeof(value)
            elif kind in _CONTAINERS:
                waiting.append(value)
    return size
