"""Looking after the files of an open database: nobody else has them, nobody has taken them away."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from ai_whisperer.errors import StoreCorruptError, StoreError, StoreFailedError, StoreInUseError, StoreReadOnlyError
from ai_whisperer.store.durable_folders import sync_folder
from ai_whisperer.store.folder_lock import FolderLock, lock_folder
from ai_whisperer.store.moved import unmark
from ai_whisperer.store.sqlite.acknowledged import Acknowledged, accept, read_claim
from ai_whisperer.store.sqlite.files import DATABASE_NAME, shm_of, wal_of

LOOK_SECONDS = 1.0
"""So often, at most, it is looked whether the files are still there: what is written into a deleted one is lost."""
_ONLY_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_RESCUED = "whisperer.rescued.db"
_LOST = "whisperer.lost{}.db"


class Custody:
    """What one process does for a data folder beside writing: the lock, the files' identity, what was acknowledged."""

    def __init__(self, database: Path, connection: apsw.Connection, lock: FolderLock, noted: Acknowledged) -> None:
        self._database = database
        self._connection = connection
        self._lock = lock
        self.acknowledged = noted
        self._known = {path: os.stat(path) for path in (database, wal_of(database)) if path.exists()}

    def check(self) -> None:
        """Raises `StoreFailedError` if a file is gone or another is in its place, or if another process came in."""
        try:
            self._lock.keep()
        except (StoreInUseError, OSError) as error:
            raise StoreFailedError(
                f"The lock of the data folder was deleted and cannot be taken again ({error}), so the runtime stopped."
            ) from error
        for path, known in self._known.items():
            try:
                if os.path.samestat(os.stat(path), known):
                    continue
            except OSError:
                pass
            raise StoreFailedError(
                f"'{path}' was removed or replaced while it was in use, so the runtime stopped. {self._saved(path)}"
            )

    def close(self) -> None:
        self.acknowledged.close()
        self._lock.release()

    def _saved(self, path: Path) -> str:
        """Save what is in a file that has no name any more, and say where it is."""
        if path != self._database:
            return "Nothing is lost: what was in it is copied into the database now. Start again."
        told = self._rescued()
        try:
            return f"{told} {self._log_set_aside()}"
        except OSError as error:
            return f"{told} '{wal_of(self._database)}' could not be renamed ({error}): move it elsewhere first."

    def _rescued(self) -> str:
        rescued = self._database.with_name(_RESCUED)
        try:
            with suppress(FileNotFoundError):
                rescued.unlink()
            self._connection.execute("VACUUM INTO ?", (str(rescued),))
            rescued.chmod(0o600)
        except (apsw.Error, OSError) as error:
            return f"What was in it could not be saved ({error}). Restore a backup."
        return f"What was in it is in '{rescued}': put it in place of '{self._database.name}' and start again."

    def _log_set_aside(self) -> str:
        """Our log under another name: SQLite would write its pages into whatever database is put in place."""
        wal = wal_of(self._database)
        if not wal.exists():
            return ""
        known = self._known.get(wal)
        if known is None or not os.path.samestat(os.stat(wal), known):
            return f"There is another '{wal.name}': move it elsewhere first."
        return f"Its write-ahead log is '{_set_log_aside(self._database).name}' now and belongs to no other database."


def _set_log_aside(database: Path) -> Path:
    """Rename the write-ahead log of a database that is gone, and the log's index; returns its path. Raises `OSError`.

    The name is that of a log of `whisperer.lost.db`: whoever finds the database again can read both under that.
    """
    names = (database.with_name(_LOST.format(number)) for number in itertools.chain([""], itertools.count(2)))
    lost = next(each for each in names if not wal_of(each).exists())
    wal_of(database).rename(wal_of(lost))
    with suppress(FileNotFoundError):
        shm_of(database).rename(shm_of(lost))
    return wal_of(lost)


def accept_loss(data: str | Path) -> str | None:
    """Take what is in the data folder for all there was: the next opening continues with it, and makes what is missing.

    Returns what was acknowledged last, as far as that is known. Raises a `StoreError` if the folder is in use or cannot
    be written. Nothing is deleted: a write-ahead log whose database is missing or empty, which SQLite would delete, is
    renamed to `whisperer.lost.db-wal`. Whoever restores a backup later has to accept that, too.
    """
    folder = Path(data)
    database = folder / DATABASE_NAME
    with _changing(folder):
        claim = read_claim(folder)
        if _size(database):
            _check_is_database(database)
        if not _size(database) and _size(wal_of(database)):
            _set_log_aside(database)
        accept(folder)
    return str(claim) if claim is not None and claim.seq else None


def use_folder(data: str | Path) -> bool:
    """Take the sessions of a data folder that were copied to PostgreSQL for its own again, as they were then.

    Returns whether they had been copied. Raises a `StoreError` if the folder is in use or cannot be written, or has no
    sessions.
    """
    folder = Path(data)
    if not (folder / DATABASE_NAME).exists():
        raise StoreError(
            f"There is no database in '{folder}', so there are no sessions in it to use. Name the data folder; "
            "nothing was changed."
        )
    with _changing(folder):
        was_marked = unmark(folder)
        sync_folder(folder)
    return was_marked


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder; raises a `StoreError` if it is in use, or cannot be written."""
    lock = lock_folder(folder)
    try:
        yield
    except OSError as error:
        raise StoreReadOnlyError(
            f"The data folder '{folder}' cannot be written ({error.strerror}). Change its permissions."
        ) from error
    finally:
        lock.release()


def _check_is_database(path: Path) -> None:
    """Raise `StoreCorruptError` if the file is none: then a backup has to be restored, and what it lacks be told."""
    try:
        with closing(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=_ONLY_READ)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except apsw.Error as error:
        raise StoreCorruptError(
            f"'{path}' is damaged or not a database ({error}), so nothing was given up. Restore a backup, then start "
            "again; what is missing in it is told then."
        ) from error


def _size(path: Path) -> int:
    """How many bytes are in the file; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
