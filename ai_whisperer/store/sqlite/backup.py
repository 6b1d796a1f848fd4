"""Backups: the whole data folder as one file, taken while a server runs, and put in place of an empty one.

The database is copied by SQLite's own online backup, from one read transaction: it is all of one moment, whatever is
committed meanwhile. It is read by the process that makes the backup, so the server is not held up; only its write-ahead
log grows until the copy is done. The token is no part of it: a folder that was restored gets one of its own.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import msgspec

from ai_whisperer.errors import StoreCorruptError, StoreError, StoreFullError, StoreInUseError, StoreReadOnlyError
from ai_whisperer.store import archive
from ai_whisperer.store.archive import Progress, Reader
from ai_whisperer.store.durable_folders import sync_folder
from ai_whisperer.store.folder_lock import lock_folder
from ai_whisperer.store.layout import WORK, keep_out_of_git, place_aside, traces_in
from ai_whisperer.store.moved import MARK, check_not_moved, unmark
from ai_whisperer.store.sqlite import opening
from ai_whisperer.store.sqlite.acknowledged import ACKNOWLEDGED_NAME
from ai_whisperer.store.sqlite.committers import BUSY_MILLISECONDS
from ai_whisperer.store.sqlite.files import DATABASE_NAME, shm_of, wal_of

STEP_PAGES = 256
RESTORING = ".restoring"
"""Here a backup is unpacked. If it is there later, restoring was cut short."""
_REPLACING = ".replacing"
_COPYING = 0.7
"""So much of the progress is copying the database, the rest packing it."""


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was made or restored: the file, its size, and how many sessions are in it."""

    file: str
    size_bytes: int
    sessions: int
    made_at: float
    set_aside: str | None = None


@contextmanager
def one_moment(data: Path) -> Iterator[apsw.Connection]:
    """A connection that sees the database as it is now, until the block ends; raises a `StoreError`.

    A server may have the folder. Nothing is changed, not even by closing it.
    """
    path = data / DATABASE_NAME
    if not path.exists():
        raise StoreError(f"There is no database in '{data}'. Name the data folder with --data.")
    check_not_moved(data)
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.execute("PRAGMA query_only=1")
            opening.check_ours(connection, path)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # from here on nothing changes
            yield connection
    except apsw.Error as error:
        raise opening.explained(error, path) from error


def backup(data: str | Path, file: str | Path, *, on_progress: Progress = lambda _: None) -> BackupReport:
    """Write a backup of a data folder to a file that is not there yet, also while a server has the folder.

    It takes time; `on_progress` is told how far it is. Raises a `StoreError` or an `ArchiveError`.
    """
    folder, file, made_at = Path(data), Path(file), time.time()
    with (
        one_moment(folder) as source,
        archive.written(file, kind="backup", schema=_version_of(source), made_at=made_at) as writer,
    ):
        copy = writer.beside / DATABASE_NAME
        sessions = _copied(source, copy, lambda part: on_progress(part * _COPYING))
        writer.add(DATABASE_NAME, copy)
        on_progress(0.9)
        writer.add_files(folder / WORK)
    on_progress(1.0)
    return BackupReport(file=str(file), size_bytes=file.stat().st_size, sessions=sessions, made_at=made_at)


def restore(
    file: str | Path, data: str | Path, *, replace: bool = False, on_progress: Progress = lambda _: None
) -> BackupReport:
    """Put a backup into a data folder that nobody uses and that has no database.

    With `replace` what is there is set aside, into a folder in it. If it is cut short nothing is lost: it can be done
    again, which sets aside what there is by then. Raises a `StoreError` or an `ArchiveError`.
    """
    file, folder = Path(file), Path(data)
    with archive.read(file, kind="backup", schema=opening.latest_version()) as reader:
        reader.check(lambda part: on_progress(part * _COPYING))
        lock = lock_folder(folder)
        try:
            with _changing(folder):
                sessions, aside = _restored(reader, folder, replace=replace)
        finally:
            lock.release()
        keep_out_of_git(folder)
        on_progress(1.0)
        return BackupReport(
            file=str(file),
            size_bytes=file.stat().st_size,
            sessions=sessions,
            made_at=reader.manifest.made_at,
            set_aside=None if aside is None else str(aside),
        )


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError from error
        raise StoreReadOnlyError(
            f"The data folder '{folder}' cannot be changed ({error.strerror or error}). Fix that and restore again; "
            "nothing is lost."
        ) from error


def _restored(reader: Reader, folder: Path, *, replace: bool) -> tuple[int, Path | None]:
    """Put the backup in place; returns how many sessions it has, and where that is which was there before."""
    unpacked = folder / RESTORING
    was_cut_short = not (folder / DATABASE_NAME).exists() and (unpacked.exists() or (folder / _REPLACING).exists())
    if not replace and not was_cut_short:
        _check_vacant(folder)
    try:
        archive.discard(unpacked)
        reader.extract(DATABASE_NAME, unpacked / DATABASE_NAME)
        reader.extract_files(unpacked / WORK)
        sessions = _checked(unpacked / DATABASE_NAME)
    except BaseException:
        if not was_cut_short:
            archive.discard(unpacked)
        raise
    aside = _set_aside(folder) if replace or was_cut_short else None
    _put_in_place(unpacked, folder)
    archive.discard(unpacked)
    return sessions, aside


def _copied(source: apsw.Connection, target: Path, on_progress: Progress) -> int:
    """Copy the database; returns how many sessions are in it."""
    with closing(apsw.Connection(str(target))) as copy:
        with copy.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(STEP_PAGES)
                on_progress(1.0 - copying.remaining / max(copying.page_count, 1))
        copy.execute("PRAGMA journal_mode=DELETE")  # it is one file, without a log beside it
        return _sessions_in(copy)


def _checked(path: Path) -> int:
    """How many sessions a database has that was unpacked; raises `StoreCorruptError` if it cannot be used."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            opening.check_ours(connection, path)
            findings = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
            if findings != ["ok"]:
                raise StoreCorruptError(f"The database in the backup is damaged ({findings[0]}). Nothing was changed.")
            return _sessions_in(connection)
    except apsw.Error as error:
        raise opening.explained(error, path) from error


def _check_vacant(folder: Path) -> None:
    there = [path.name for path in (folder / DATABASE_NAME, wal_of(folder / DATABASE_NAME)) if path.exists()]
    there += [str(trace.relative_to(folder)) for trace in traces_in(folder)][:1]
    if there:
        raise StoreInUseError(
            f"'{folder}' has {there[0]} already, and nothing was changed. Restore into another folder (--data), or set "
            "aside what is there (--replace)."
        )


def _set_aside(folder: Path) -> Path | None:
    """Move what a data folder has into a folder in it; returns that, if there was anything.

    What was acknowledged there is kept in mind, so that nobody takes the folder for a new one meanwhile. If this was
    cut short, it goes on: a database and its log are not set aside apart. The mark of one that was copied to PostgreSQL
    goes last: as long as the database is there it is marked.
    """
    database, aside = folder / DATABASE_NAME, folder / _REPLACING
    named = place_aside(folder)
    if database.exists() and (aside / DATABASE_NAME).exists():
        aside.rename(place_aside(folder))  # somebody made a new database after one was set aside
    names = (DATABASE_NAME, wal_of(database).name, shm_of(database).name, WORK, MARK)
    there = [folder / name for name in names if (folder / name).exists()]
    if not there and not aside.exists():
        return None
    aside.mkdir(mode=0o700, exist_ok=True)
    noted = folder / ACKNOWLEDGED_NAME
    if noted.exists() and not (aside / ACKNOWLEDGED_NAME).exists():
        shutil.copy2(noted, aside / ACKNOWLEDGED_NAME)
    noted.write_bytes(b"")
    for path in there:
        path.rename(aside / path.name)
    aside.rename(named)
    return named


def _put_in_place(unpacked: Path, folder: Path) -> None:
    """The database last: before that, whoever opens the folder is told that one is missing."""
    (folder / ACKNOWLEDGED_NAME).write_bytes(b"")
    if (unpacked / WORK).exists():
        work = folder / WORK
        if work.exists():
            work.rmdir()  # it is empty, or it would have been in the way
        (unpacked / WORK).rename(work)
    unmark(folder)
    (unpacked / DATABASE_NAME).rename(folder / DATABASE_NAME)
    sync_folder(folder)


def _version_of(connection: apsw.Connection) -> int:
    ((version,),) = connection.execute("PRAGMA user_version")
    return int(version)


def _sessions_in(connection: apsw.Connection) -> int:
    ((count,),) = connection.execute("SELECT count(*) FROM session")
    return int(count)
