"""Opening a database file: take it for this process alone, refuse what is not ours, bring it up to date."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from importlib import resources
from pathlib import Path

import apsw

from ai_whisperer.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreInUseError,
    StoreReadOnlyError,
    StoreVersionError,
)
from ai_whisperer.store import queries

APPLICATION_ID = 0x57485350
LOCK_NAME = "whisperer.lock"
_LOOKS = 5
_LOOK_SECONDS = 0.01
_CHECKED_BYTES = 16 << 20
"""Up to this size the whole file is checked when it is opened; a larger one shows its faults when they are read."""


_held: set[int] = set()


def _let_go_in_child() -> None:
    """A forked child has the lock too, and would keep it when we die: it lets go at once."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


class FileLock:
    """A lock on a file that ends with the process, however the process ends."""

    def __init__(self, path: Path) -> None:
        """Raises `StoreInUseError` if another live process holds it."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            who = "This process" if holder == str(os.getpid()) else f"The process with the id {holder}"
            what = "Close it first" if holder == str(os.getpid()) else "Stop it"
            raise StoreInUseError(
                f"{who} has the data folder '{path.parent}' open. {what}, or choose another data folder."
            ) from error
        _held.add(self._descriptor)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    @staticmethod
    def holder(path: Path) -> str | None:
        """The id of the live process that holds the lock; None if nobody does."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        finally:
            os.close(descriptor)
        return None

    def release(self) -> None:
        _held.discard(self._descriptor)
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Take the lock; raises `BlockingIOError`. Whoever looks who holds it has it for a moment, which is waited for."""
    for _ in range(_LOOKS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOOK_SECONDS)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_folder(folder: Path) -> FileLock:
    """Make the folder and take it for this process; raises a `StoreError` that says what to do."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(folder / LOCK_NAME)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError from error
        raise StoreReadOnlyError(
            f"The data folder '{folder}' cannot be written ({error.strerror}). "
            "Choose another or change its permissions."
        ) from error


def open_database(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    """Open or create the database for writing; raises a `StoreError` and leaves a file that is not ours as it is."""
    try:
        _check_file(path, vfs)
        if vfs is None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # its log and its index are as private as it is
        connection = apsw.Connection(str(path), vfs=vfs)
        try:
            connection.set_busy_timeout(5_000)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            migrate(connection)
            finish_deletions(connection)
        except BaseException:
            connection.close()
            raise
    except apsw.Error as error:
        raise explained(error, path) from error
    return connection


def open_reader(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=vfs)
    try:
        connection.set_busy_timeout(5_000)
        connection.execute("PRAGMA query_only=1")
    except BaseException:
        connection.close()
        raise
    return connection


def latest_version() -> int:
    return len(_migrations())


def database_version(path: Path) -> int:
    """The version of an existing database that nobody has open; raises a `StoreError` if it cannot be used."""
    try:
        _check_file(path, None)
        connection = open_reader(path)
        try:
            ((version,),) = connection.execute("PRAGMA user_version")
        finally:
            connection.close()
    except apsw.Error as error:
        raise explained(error, path) from error
    return int(version)


def explained(error: apsw.Error, path: Path) -> StoreError:
    """The error of the database as one of ours."""
    match error:
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreCorruptError(
                f"'{path}' is damaged or not a database ({error}). Restore a backup or choose another data "
                "folder; the file was left as it is."
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreReadOnlyError(
                f"'{path}' cannot be written ({error}). Choose another data folder or change its permissions."
            )
        case apsw.FullError():
            return StoreFullError(
                f"The disk that holds '{path}' is full. Free some space and start again; "
                "everything accepted before is safe."
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreInUseError(f"Another program has '{path}' locked. Stop it and start again.")
        case _:
            return StoreError(f"'{path}' cannot be used: {error}.")


def _check_file(path: Path, vfs: str | None) -> None:
    """Look at an existing file through a connection that cannot change it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a log that was left over stays as it is
        connection.execute("PRAGMA query_only=1")
        ((application_id,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if application_id == 0 and tables == 0:
            return  # made, but not filled: the process that made it died
        if application_id != APPLICATION_ID:
            raise StoreCorruptError(
                f"'{path}' is a database of another program. Choose another data folder; the file was left as it is."
            )
        if version > latest_version():
            raise StoreVersionError(
                f"'{path}' has version {version}, this AI Whisperer knows versions up to {latest_version()}. "
                "Upgrade AI Whisperer; the file was left as it is."
            )
        if path.stat().st_size <= _CHECKED_BYTES:
            findings = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
            if findings != ["ok"]:
                raise StoreCorruptError(
                    f"'{path}' is damaged ({findings[0]}). Restore a backup or choose another data folder; "
                    "the file was left as it is."
                )
    finally:
        connection.close()


def _migrations() -> list[str]:
    folder = resources.files("ai_whisperer.store") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def migrate(connection: apsw.Connection) -> None:
    """Apply the migrations that the database does not have yet, all of them or none."""
    ((version,),) = connection.execute("PRAGMA user_version")
    missing = _migrations()[version:]
    if not missing:
        return
    with connection:
        for script in missing:
            connection.execute(script)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={version + len(missing)}")


def finish_deletions(connection: apsw.Connection) -> None:
    """Delete what is left of the sessions that were being deleted when the process ended."""
    for (session_id,) in list(connection.execute(queries.DELETIONS)):
        for statement in queries.DELETE_SOME.values():
            connection.execute(statement, (session_id, -1))
        connection.execute(queries.END_DELETION, (session_id,))
