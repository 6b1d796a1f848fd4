"""A file system for SQLite whose power can be cut at any call: all that is done to a data folder is written down.

The files are real ones in a temporary folder, so whoever looks at them by other ways sees what SQLite has written.
Nothing is really synced: what would be durable is in a `WrittenTree`, which says what there is after a cut.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from ai_whisperer.testing.power import WrittenFile, WrittenFolder, WrittenTree

KINDS = (
    *(f"{file}.{call}" for file in ("database", "wal", "journal") for call in ("write", "sync")),
    "open",
    "read",
    "delete",
    "truncate",
    "note.write",
    "note.sync",
    "folder.sync",
)
"""The calls at which the power can be cut. A note is what is kept in other files than the database's."""

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_names = itertools.count()


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """What happens at which call: the power is cut or, with an errno, the call fails.

    `number` counts the calls of that kind, or all if there is none, from 1. `late` is after the call has done its work.
    """

    kind: str | None = None
    number: int
    late: bool = False
    error: int | None = None
    lasting: bool = False

    def __str__(self) -> str:
        what = "power cut" if self.error is None else errno.errorcode[self.error]
        where = f"call {self.number}" if self.kind is None else f"{self.kind} {self.number}"
        return f"{what} {'after' if self.late else 'at'} {where}{' and all later' if self.lasting else ''}"


class PoweredDisk:
    """What happens to a data folder until the power is cut. After that nothing reaches it, whoever goes on writing."""

    def __init__(self, folder: Path, tree: WrittenTree, *, on_cut: Callable[[], None] = lambda: None) -> None:
        self.path = folder
        self.tree = tree
        self.plans: tuple[Interruption, ...] = ()
        self.counts: Counter[str] = Counter()
        self.is_on = True
        self.cut_at: str | None = None
        self.failed_at: list[str] = []
        self._on_cut = on_cut
        self._is_watched = True

    @property
    def folder(self) -> WrittenFolder:
        return self.tree.folder

    def around(self, kind: str, doing: Callable[[], None]) -> None:
        """Do something unless the power is off, or goes off before; raises an error of the system if it is to fail."""
        if not self.is_on or not self._is_watched:
            if self.is_on:
                doing()
            return
        self.counts[kind] += 1
        self.counts["all"] += 1
        due = [plan for plan in self.plans if self._is_due(plan, kind)]
        error = next((plan.error for plan in due if plan.error is not None), None)
        if any(plan.error is None and not plan.late for plan in due):
            self.cut(kind)
        if error is not None:
            self.failed_at.append(kind)
            raise OSError(error, os.strerror(error))
        if self.is_on:
            doing()
        if self.is_on and any(plan.error is None for plan in due):
            self.cut(kind)

    def cut(self, kind: str = "no call") -> None:
        if self.is_on:
            self.is_on = False
            self.cut_at = kind
            self._on_cut()

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Let nothing happen at calls, nor count them."""
        self._is_watched = False
        try:
            yield
        finally:
            self._is_watched = True

    def _is_due(self, plan: Interruption, kind: str) -> bool:
        count = self.counts[plan.kind or "all"]
        return plan.kind in (None, kind) and (count == plan.number or (plan.lasting and count > plan.number))


class PowerVFS(apsw.VFS):
    """The ordinary file system, whose calls for files of the disk's folder go past the disk."""

    deaf_to_syncs_of = ""
    """The kind of file, or the folder, whose syncs do nothing: to see whether somebody notices."""

    def __init__(self, disk: PoweredDisk) -> None:
        self.name = f"power-{next(_names)}"
        self.disk = disk
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or Path(path).parent != self.disk.path:
            return apsw.VFSFile("", name, flags)
        return _PoweredFile(self, name, flags, Path(path).name)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - as SQLite calls it
        path = Path(filename)
        if path.parent == self.disk.path:
            _told(self.disk, "delete", lambda: self.disk.folder.delete(path.name), apsw.IOError)
        super().xDelete(filename, False)  # noqa: FBT003 - as above
        if syncdir and path.parent == self.disk.path:
            _told(self.disk, "folder.sync", self.sync_folder, apsw.IOError)

    def excepthook(self, *_: object) -> bool:
        """An error that SQLite keeps to itself is told to nobody."""
        return True

    def sync_folder(self) -> None:
        if self.deaf_to_syncs_of != "folder":
            self.disk.folder.sync()


class _PoweredFile(apsw.VFSFile):
    def __init__(self, vfs: PowerVFS, name: Any, flags: list[int], file_name: str) -> None:
        self._vfs = vfs
        self._disk = vfs.disk
        wanted = flags[0]
        self._kind = "wal" if wanted & apsw.SQLITE_OPEN_WAL else "journal" if wanted & _JOURNALS else "database"
        self._syncs_folder = bool(wanted & apsw.SQLITE_OPEN_CREATE and wanted & _JOURNALS)
        _told(self._disk, "open", lambda: None, apsw.CantOpenError)
        super().__init__("", name, flags)
        self._file: WrittenFile = self._disk.folder.open(file_name) if self._disk.is_on else WrittenFile()

    def excepthook(self, *_: object) -> bool:
        """As above."""
        return True

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        _told(self._disk, "read", lambda: None, apsw.IOError)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        content = bytes(data)
        _told(self._disk, f"{self._kind}.write", lambda: self._file.write(offset, content), apsw.IOError)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        _told(self._disk, "truncate", lambda: self._file.truncate(size), apsw.IOError)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """As the ordinary file system does it: with the first sync of a journal the folder is synced as well."""
        del flags
        if self._vfs.deaf_to_syncs_of == self._kind:
            return
        _told(self._disk, f"{self._kind}.sync", self._file.sync, apsw.IOError)
        if self._syncs_folder:
            _told(self._disk, "folder.sync", self._vfs.sync_folder, apsw.IOError)
            self._syncs_folder = False


class PoweredSystem:
    """The module `os` for code that keeps files beside the database: what it does to them goes past a disk, too."""

    def __init__(self, disk: Callable[[], PoweredDisk]) -> None:
        self._disk = disk
        self._open: dict[int, Path] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str | Path, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        self._open[descriptor] = Path(path)
        if flags & os.O_CREAT and self._is_ours(Path(path)) and self._disk().is_on:
            self._disk().folder.open(Path(path).name)
        return descriptor

    def close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        os.close(descriptor)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        path, disk = self._open.get(descriptor), self._disk()
        if path is not None and self._is_ours(path):
            disk.around("note.write", lambda: disk.folder.open(path.name).write(offset, data))
        return os.pwrite(descriptor, data, offset)

    def fsync(self, descriptor: int) -> None:
        """Nothing is really synced."""
        path, disk = self._open.get(descriptor), self._disk()
        if path is not None and self._is_ours(path):
            disk.around("note.sync", lambda: disk.folder.open(path.name).sync())
        elif path == disk.path:
            disk.around("folder.sync", disk.folder.sync)
        elif path == disk.path.parent:
            disk.around("folder.sync", disk.tree.sync_outer)

    def unlink(self, path: str | Path) -> None:
        disk = self._disk()
        if self._is_ours(Path(path)) and disk.is_on:
            disk.folder.delete(Path(path).name)
        os.unlink(path)

    def _is_ours(self, path: Path) -> bool:
        return path.parent == self._disk().path


def _told(disk: PoweredDisk, kind: str, doing: Callable[[], None], error_of: type[apsw.Error]) -> None:
    """Have the disk do it, and tell SQLite in its own words if that fails."""
    try:
        disk.around(kind, doing)
    except OSError as error:
        raise (apsw.FullError if error.errno == errno.ENOSPC else error_of)(str(error)) from None
