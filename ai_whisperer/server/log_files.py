"""Where logs are on disk, and how they grow: lines are appended, and a file that is full is put aside.

The files put aside are `NAME.log.1` (the latest), `NAME.log.2` and so on. A position counts the bytes of a log from its
beginning, over all files that there were: each file but the first begins with a line that tells at which position. It
is made as `NAME.log.next` before the full one is put aside, so that the position is known whenever the process ends.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ai_whisperer.core.file_names import file_name, file_name_before, renamed
from ai_whisperer.store.layout import LOGS
from ai_whisperer.tools.files.taking_over import take_over

SERVER_LOG = "server.log"
CONTINUED = "log.continued"
"""The event of a line that tells the position at which its file begins."""

_SESSION = "session"
_SESSION_TAKEN = re.compile(_SESSION, re.IGNORECASE)
_SERVER_TAKEN = re.compile(rf"{re.escape(SERVER_LOG)}(\.(\d+|next))?", re.IGNORECASE)
_LOG = re.compile(r"(?P<name>.+)(?P<rest>\.log(\.(\d+|next))?)")
_MAX_OPEN = 64
_HEAD_BYTES = 200


class _Head(msgspec.Struct, tag_field="event", tag=CONTINUED):
    position: int


_head = msgspec.json.Decoder(_Head)


def log_folder(data: Path) -> Path:
    return data / LOGS


def log_path(data: Path, session_id: str, agent_id: str | None) -> Path:
    """The log of an agent or, with None, of what belongs to no agent of the session. It is always below `logs`."""
    folder = file_name(session_id, taken=_SERVER_TAKEN)
    file = _SESSION if agent_id is None else file_name(agent_id, taken=_SESSION_TAKEN)
    return log_folder(data) / folder / f"{file}.log"


def take_over_logs(data: Path, session_id: str) -> None:
    """Give the logs of a session that an earlier version wrote the names that they have now."""
    folder = log_path(data, session_id, None).parent
    before = file_name_before(session_id, taken=_SERVER_TAKEN)
    if before != folder.name:
        take_over(folder.parent, lambda _: {before: folder.name})
    take_over(folder, _renamed_logs)


def _renamed_logs(found: Iterable[str]) -> dict[str, str]:
    logs = [match for each in found if (match := _LOG.fullmatch(each))]
    changes = renamed((match["name"] for match in logs), taken=_SESSION_TAKEN)
    return {match[0]: f"{changes[match['name']]}{match['rest']}" for match in logs if match["name"] in changes}


def timestamp(at: float) -> str:
    """Seconds since the epoch as ISO 8601, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rotated(path: Path, number: int) -> Path:
    """The file that was put aside so many files ago; the log's own for 0."""
    return path.with_name(f"{path.name}.{number}") if number else path


def next_of(path: Path) -> Path:
    """The file that takes the place of the log's own when that is put aside."""
    return path.with_name(f"{path.name}.next")


def head_position(first_bytes: bytes) -> int:
    """The position at which a file begins, from its first line."""
    line = first_bytes.partition(b"\n")[0]
    try:
        return _head.decode(line).position
    except msgspec.DecodeError:
        return 0


def head_bytes(file: int) -> bytes:
    return os.pread(file, _HEAD_BYTES, 0)


class LogFiles:
    """The logs that one thread writes. At most 64 are open; the one that was not used for longest is closed first."""

    def __init__(self, *, max_bytes: int, backups: int) -> None:
        self._max_bytes = max_bytes
        self._backups = backups
        self._open: OrderedDict[Path, _LogFile] = OrderedDict()

    def append(self, path: Path, lines: Sequence[bytes]) -> tuple[int, OSError | None]:
        """Write lines, each with its line end. Returns how many were written, and what kept the others from it."""
        written = 0
        try:
            for piece in self._pieces(path, lines):
                self._file(path).write(b"".join(piece))
                written += len(piece)
        except OSError as error:
            self._forget(path)
            return written, error
        return written, None

    def remove(self, folder: Path) -> None:
        """Remove a folder with all logs in it, if it is there."""
        for path in list(self._open):
            if path.parent == folder:
                self._forget(path)
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def close(self) -> None:
        for path in list(self._open):
            self._forget(path)

    def _pieces(self, path: Path, lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """The lines in pieces that fit into the file, which is put aside between them. A line is never cut in two."""
        first = 0
        while first < len(lines):
            file = self._file(path)
            room = self._max_bytes - file.size
            last = first
            while last < len(lines) and len(lines[last]) <= room:
                room -= len(lines[last])
                last += 1
            if last == first and not file.is_fresh:
                self._put_aside(path)
                continue
            last = max(last, first + 1)
            yield lines[first:last]
            first = last

    def _file(self, path: Path) -> _LogFile:
        file = self._open.get(path)
        if file is not None and not file.is_at(path):
            self._forget(path)  # somebody removed or replaced it
            file = None
        if file is None:
            while len(self._open) >= _MAX_OPEN:
                self._forget(next(iter(self._open)))
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists():
                _move(next_of(path), path)  # the process ended while it put the log aside
            file = self._open[path] = _LogFile(path)
        self._open.move_to_end(path)
        return file

    def _put_aside(self, path: Path) -> None:
        file = self._file(path)
        position = file.position + file.size
        self._forget(path)
        following = next_of(path)
        following.unlink(missing_ok=True)
        self._open[path] = _LogFile(following, position=position)
        for number in range(self._backups, 0, -1):
            _move(rotated(path, number - 1), rotated(path, number))
        for kept_no_more in _existing(path, self._backups + 1 if self._backups else 0):
            kept_no_more.unlink()
        following.replace(path)

    def _forget(self, path: Path) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            file.close()


class _LogFile:
    """One file that is open for appending."""

    def __init__(self, path: Path, *, position: int = 0) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self.size = os.fstat(self._file).st_size
            self._begin(position)
        except OSError:
            os.close(self._file)
            raise
        self._head_size = self.size if position else 0

    @property
    def is_fresh(self) -> bool:
        """Whether nothing but the head is in the file."""
        return self.size <= self._head_size

    def is_at(self, path: Path) -> bool:
        try:
            there = os.stat(path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._file))

    def write(self, content: bytes) -> None:
        while content:
            count = os.write(self._file, content)
            self.size += count
            content = content[count:]

    def close(self) -> None:
        os.close(self._file)

    def _begin(self, position: int) -> None:
        if self.size == 0:
            self.position = position
            if position:
                self.write(msgspec.json.encode(_Head(position)) + b"\n")
            return
        self.position = head_position(head_bytes(self._file))
        if os.pread(self._file, 1, self.size - 1) != b"\n":
            self.write(b"\n")  # the process or the disk ended in the middle of a line


def _move(old: Path, new: Path) -> None:
    with suppress(FileNotFoundError):
        old.replace(new)


def _existing(path: Path, number: int) -> Iterator[Path]:
    while rotated(path, number).exists():
        yield rotated(path, number)
        number += 1
