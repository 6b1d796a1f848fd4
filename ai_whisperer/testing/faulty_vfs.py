"""A file system for SQLite that fails on demand: full disk, input/output error, read-only."""

from __future__ import annotations

import itertools
from typing import Any

import apsw

_names = itertools.count()


class FaultyVFS(apsw.VFS):
    """The ordinary file system until `fail_with` is set; then every write or sync raises it."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_names)}"
        self.fail_with: type[apsw.Error] | None = None
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, vfs: FaultyVFS, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._fail()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._fail()
        super().xSync(flags)

    def _fail(self) -> None:
        if self._vfs.fail_with is not None:
            raise self._vfs.fail_with
