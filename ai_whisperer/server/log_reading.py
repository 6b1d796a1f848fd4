"""Reading the log of an agent, from its end or from a position on, while it grows and its files are put aside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from ai_whisperer.core.paging import checked_limit, checked_position
from ai_whisperer.errors import StoreError
from ai_whisperer.server.log_files import CONTINUED, head_bytes, head_position, log_path, next_of, rotated

_BLOCK_BYTES = 64 << 10


class LogPage(msgspec.Struct, frozen=True):
    """Some entries of a log, in order, and the position to give as `after` for those that follow."""

    entries: list[dict[str, Any]]
    next: int


class _Part(NamedTuple):
    """One file of a log: `position` is where it begins in the log, `size` what it has in whole lines."""

    file: BinaryIO
    position: int
    size: int

    @property
    def end(self) -> int:
        return self.position + self.size


class _Numbered(msgspec.Struct):
    seq: int = 0


_numbered = msgspec.json.Decoder(_Numbered)


def read_log(data: Path, session_id: str, agent_id: str | None, *, after: int | None, limit: int) -> LogPage:
    """At most `limit` entries of an agent's log, or with None of what belongs to no agent of the session.

    The last ones if `after` is None, else those that follow that position. What has been put aside is read too, as long
    as it is kept. A log that was removed and has begun again is read from its start. It is a few reads of files, so
    call it from a thread. Raises `InvalidInputError` for a position or limit that makes no sense, and `StoreError` if
    the log cannot be read.
    """
    checked_limit(limit)
    path = log_path(data, session_id, agent_id)
    with ExitStack() as stack:
        try:
            parts = _parts(path, stack)
            if not parts:
                return LogPage([], 0)
            if after is None:
                return LogPage(_last(parts, session_id, agent_id, limit), parts[-1].end)
            return _following(parts, session_id, agent_id, after=checked_position(after), limit=limit)
        except OSError as error:
            raise StoreError(f"The log '{path}' cannot be read: {error.strerror}.") from error


def _parts(path: Path, stack: ExitStack) -> list[_Part]:
    """The files of the log, the oldest first, as far back as they follow on each other."""
    parts: list[_Part] = []
    for number in count():
        try:
            file = stack.enter_context(_opened(path, number))
        except FileNotFoundError:
            break
        if parts and os.path.sameopenfile(parts[0].file.fileno(), file.fileno()):
            continue  # it was put aside while we looked
        part = _Part(file, head_position(head_bytes(file.fileno())), _whole_lines(file))
        if parts and part.end != parts[0].position:
            break
        parts.insert(0, part)
    return parts


def _opened(path: Path, number: int) -> BinaryIO:
    try:
        return rotated(path, number).open("rb")
    except FileNotFoundError:
        if number:
            raise
    return next_of(path).open("rb")  # the process ended, or is just about to give it its name


def last_numbers(folder: Path) -> dict[Path, int]:
    """For each log of a session the number of the last notification in it. What cannot be read is left out."""
    numbers: dict[Path, int] = {}
    for file in [*folder.glob("*.log"), *folder.glob("*.log.next")]:
        path = file.with_name(file.name.removesuffix(".next"))
        with suppress(OSError), ExitStack() as stack:
            lines = (line for part in reversed(_parts(path, stack)) for line in _lines_backwards(part))
            found = next((number for line in lines if (number := _number(line))), None)
            if found is not None:
                numbers[path] = found
    return numbers


def _number(line: bytes) -> int:
    """The number of the notification that a line tells of, or 0 if it tells of none."""
    try:
        return _numbered.decode(line).seq
    except msgspec.DecodeError:
        return 0


def _whole_lines(file: BinaryIO) -> int:
    """How many bytes there are up to the last line end."""
    for start, block in _blocks(file, file.seek(0, os.SEEK_END)):
        if (last := block.rfind(b"\n")) >= 0:
            return start + last + 1
    return 0


def _blocks(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """The bytes before `end` in blocks, the last one first."""
    while end > 0:
        start = max(end - _BLOCK_BYTES, 0)
        file.seek(start)
        yield start, file.read(end - start)
        end = start


def _last(parts: Sequence[_Part], session_id: str, agent_id: str | None, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in reversed(parts):
        for line in _lines_backwards(part):
            if (entry := _entry(line, session_id, agent_id)) is not None:
                found.append(entry)
                if len(found) == limit:
                    return found[::-1]
    return found[::-1]


def _lines_backwards(part: _Part) -> Iterator[bytes]:
    rest: list[bytes] = []
    for _, block in _blocks(part.file, part.size):
        first, *lines = block.split(b"\n")
        if lines:
            lines[-1] += b"".join(reversed(rest))
            yield from reversed(lines)
            rest = []
        rest.append(first)
    yield b"".join(reversed(rest))


def _following(parts: Sequence[_Part], session_id: str, agent_id: str | None, *, after: int, limit: int) -> LogPage:
    found: list[dict[str, Any]] = []
    position = after if after <= parts[-1].end else parts[-1].position
    for part in parts:
        if part.end <= position:
            continue
        position = max(position, part.position)
        for line in _lines_from(part, position - part.position):
            position += len(line)
            if (entry := _entry(line, session_id, agent_id)) is not None:
                found.append(entry)
                if len(found) == limit:
                    return LogPage(found, position)
    return LogPage(found, position)


def _lines_from(part: _Part, start: int) -> Iterable[bytes]:
    part.file.seek(start)
    while start < part.size:
        line = part.file.readline()
        start += len(line)
        yield line


def _entry(line: bytes, session_id: str, agent_id: str | None) -> dict[str, Any] | None:
    """The entry in a line, or None for the lines of the files' own, for torn ones, and for those of others.

    Two names that differ only in their case share a file where the disk makes no difference between them.
    """
    try:
        entry = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(entry, dict) or entry.get("event") == CONTINUED:
        return None
    return entry if (entry.get("session"), entry.get("agent")) == (session_id, agent_id) else None
