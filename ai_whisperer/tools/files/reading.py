"""`read_file`: the text of a file, whole or in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.content import PIECE_BYTES, check_text, lines_in, text_of, version_of
from ai_whisperer.tools.files.opening import OpenPlace, opened
from ai_whisperer.tools.function import CancelSignal, ToolContext, tool

_LINES = 2000
_PIECE_BYTES = 1 << 20
_HEADING_BYTES = 600
_MOST_TRIES = 5
_BOM = "\ufeff"


class _Part(NamedTuple):
    """Some lines of a file. `is_cut` says that the only one of them is longer than there is room for."""

    data: bytes
    is_cut: bool
    has_more: bool

    @property
    def lines(self) -> int:
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


@tool(idempotent=True, untrusted=True, touches="read file:{path}")
def read_file(context: ToolContext, path: str, first_line: int = 1, lines: int = _LINES) -> str:
    """Read a text file, from first_line on, as many lines as asked for. The path is relative to your working folder.

    The first line of the result tells which lines follow and the version of the file. Give that version to write_file
    or edit_file, and they change the file only if nobody else has changed it since.
    """
    if first_line < 1 or lines < 1:
        raise ToolError("first_line and lines must be at least 1. Lines are counted from 1.")
    with opened(context.workplace, path) as place:
        descriptor, status = place.open_file()
        with open(descriptor, "rb", buffering=0):
            return _read(descriptor, status.st_size, place, context, first_line=first_line, lines=lines)


def whole(descriptor: int, name: str) -> bytes:
    """All bytes of an open file, as they were at one time; raises `ToolError` if it is never left alone."""
    for _ in range(_MOST_TRIES):
        before = os.fstat(descriptor)
        data = b"".join(_pieces(descriptor, CancelSignal()))
        after = os.fstat(descriptor)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and len(data) == after.st_size:
            return data
    raise ToolError(f"'{name}' is being changed by somebody else all the time. Try again later.")


def _read(descriptor: int, size: int, place: OpenPlace, context: ToolContext, *, first_line: int, lines: int) -> str:
    limits = place.limits
    if size > limits.max_file_bytes:
        pieces = _pieces(descriptor, context.cancelled)
        known = f"too large for a version, which files have up to {limits.max_file_bytes:,} bytes"
    else:
        data = whole(descriptor, place.name)
        check_text(data, path=place.name, size=size)
        pieces = (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))
        count = lines_in(data) + bool(data and not data.endswith(b"\n"))
        known = f"{count:,} lines in all, version {version_of(data)}"
    part = _taken(
        _from_line(pieces, first_line, name=place.name), lines, room=max(1, limits.max_result_bytes - _HEADING_BYTES)
    )
    text = text_of(part.data, path=place.name, size=size).removeprefix(_BOM)
    last = first_line + part.lines - 1
    heading = f"lines {first_line}-{last}" if part.data else "empty"
    notes = [f"{size:,} bytes", known]
    if part.is_cut:
        notes.append(f"line {last} is cut, it is longer than a result may be; search_files finds what is further on")
    elif part.has_more:
        notes.append(f"continue with first_line={last + 1}")
    return f"[{place.name}: {heading}; {'; '.join(notes)}]\n{text}"


def _pieces(descriptor: int, cancelled: CancelSignal) -> Iterator[bytes]:
    at = 0
    while piece := os.pread(descriptor, _PIECE_BYTES, at):
        if cancelled.is_set():
            raise ToolError("The call was stopped before the file was read.")
        yield piece
        at += len(piece)


def _from_line(pieces: Iterator[bytes], first_line: int, *, name: str) -> Iterator[bytes]:
    """What follows the lines before the first one; raises `ToolError` if there are not so many."""
    missing = first_line - 1
    ended = True
    for piece in pieces:
        ends = piece.count(b"\n")
        ended = piece.endswith(b"\n")
        if ends < missing:
            missing -= ends
            continue
        start = 0
        for _ in range(missing):
            start = piece.index(b"\n", start) + 1
        missing = 0
        if start < len(piece):
            yield piece[start:]
            yield from pieces
            return
    if first_line > 1:
        count = first_line - 1 - missing + (not ended)
        raise ToolError(f"'{name}' has only {count:,} lines. Ask for one of them.")


def _taken(pieces: Iterator[bytes], lines: int, *, room: int) -> _Part:
    """So many lines, as far as there is room for them; if there is not even for one, its beginning."""
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > room or data.count(b"\n") >= lines:
            break
    end = 0
    for _ in range(lines):
        following = data.find(b"\n", end) + 1
        if following == 0 or following > room:
            break
        end = following
    else:
        return _Part(data[:end], is_cut=False, has_more=end < len(data) or any(pieces))
    if len(data) <= room and not any(pieces):
        return _Part(data, is_cut=False, has_more=False)
    if end:
        return _Part(data[:end], is_cut=False, has_more=True)
    return _Part(_without_half_a_character(data[:room]), is_cut=True, has_more=True)


def _without_half_a_character(data: bytes) -> bytes:
    """The bytes up to the last character of which all of them are there."""
    start = len(data)
    while start and data[start - 1] & 0xC0 == 0x80:  # the second to fourth byte of a character
        start -= 1
    return data[: start - 1] if start else data
