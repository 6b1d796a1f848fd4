"""Lets one call fail, in this process: a call into SQLite, or one of SQLite into the file system."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import apsw
import msgspec

T = TypeVar("T")

ERRORS: dict[str, type[BaseException]] = {
    "full": apsw.FullError,
    "io": apsw.IOError,
    "read-only": apsw.ReadOnlyError,
    "busy": apsw.BusyError,
    "locked": apsw.LockedError,
    "corrupt": apsw.CorruptError,
    "memory": apsw.NoMemError,
}
SURPRISE = "surprise"
"""An error that is none of SQLite's."""
HANG = "hang"
"""The call does not come back."""

CALLS = ("open", "pragma", "begin", "write", "read", "commit", "rollback", "checkpoint", "close")
FILE_CALLS = ("file.open", "file.read", "file.write", "file.sync", "file.truncate")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What happens at which call. `number` counts the calls of that name from 1; one that lasts goes on from there.

    `late` is a call that does what it should, and then fails.
    """

    call: str
    kind: str
    number: int = 1
    lasting: bool = False
    late: bool = False

    def __str__(self) -> str:
        when = f"{self.call} {self.number}{' and all later' if self.lasting else ''}"
        return f"{self.kind} {'after' if self.late else 'at'} {when}"


class Injection:
    """Counts the calls, and lets those fail that are to. It begins to count when it is armed."""

    def __init__(self, fault: Fault | None) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def around(self, name: str, call: Callable[[], T]) -> T:
        fails = self._is_to_fail(name)
        if fails is not None and not fails.late:
            _fail(fails.kind)
        done = call()
        if fails is not None:
            _fail(fails.kind)
        return done

    def _is_to_fail(self, name: str) -> Fault | None:
        with self._lock:
            self.counts[name] += 1
            count, fault = self.counts[name], self._fault
        if fault is None or fault.call != name or count < fault.number or (count > fault.number and not fault.lasting):
            return None
        return fault


def _fail(kind: str) -> None:
    if kind == HANG:
        threading.Event().wait()
    raise ERRORS.get(kind, RuntimeError)(f"injected: {kind}")


class _Cursor(apsw.Cursor):
    injection: Injection

    def execute(self, statements: str, *arguments: Any, **options: Any) -> Any:
        run = partial(super().execute, statements, *arguments, **options)
        return self.injection.around(call_of(statements), run)

    def executemany(self, statements: str, *arguments: Any, **options: Any) -> Any:
        return self.injection.around("write", partial(super().executemany, statements, *arguments, **options))


class _Connection(apsw.Connection):
    injection: Injection

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.injection.around("open", partial(super().__init__, *arguments, **options))
        self.cursor_factory = _Cursor

    def wal_checkpoint(self, *arguments: Any, **options: Any) -> Any:
        return self.injection.around("checkpoint", partial(super().wal_checkpoint, *arguments, **options))

    def close(self, *arguments: Any, **options: Any) -> None:
        self.injection.around("close", partial(super().close, *arguments, **options))


class _File(apsw.VFSFile):
    injection: Injection

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        return self.injection.around("file.read", partial(super().xRead, amount, offset))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self.injection.around("file.write", partial(super().xWrite, data, offset))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self.injection.around("file.sync", partial(super().xSync, flags))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        self.injection.around("file.truncate", partial(super().xTruncate, size))


class _Files(apsw.VFS):
    def __init__(self, injection: Injection) -> None:
        self._injection = injection
        super().__init__("injected", base="unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return self._injection.around("file.open", lambda: _File("unix", name, flags))


def install(injection: Injection) -> apsw.VFS:
    """Have all connections of this process, and all files that they open, go through the injection.

    It lasts as long as what is returned.
    """
    for kind in (_Cursor, _Connection, _File):
        kind.injection = injection
    apsw.Connection = _Connection  # type: ignore[misc]
    return _Files(injection)


def call_of(statements: str) -> str:
    """The name of the call that runs these statements."""
    first = statements.lstrip().split(None, 1)[0].upper()
    match first:
        case "BEGIN" | "COMMIT" | "ROLLBACK" | "PRAGMA":
            return first.lower()
        case "SELECT" | "WITH":
            return "read"
    return "write"
