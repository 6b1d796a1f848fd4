"""Opening a database file: refuse what is not ours and what is not all that there was, bring it up to date."""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path

import apsw

from ai_whisperer.core.file_names import file_name
from ai_whisperer.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreInUseError,
    StoreLostError,
    StoreReadOnlyError,
    StoreVersionError,
)
from ai_whisperer.store.layout import WORK, traces_in
from ai_whisperer.store.operations import DELETE_DELETION, DELETE_SOME
from ai_whisperer.store.sqlite import queries
from ai_whisperer.store.sqlite.acknowledged import ACKNOWLEDGED_NAME, Claim, read_claim
from ai_whisperer.store.sqlite.committers import BUSY_MILLISECONDS
from ai_whisperer.store.sqlite.files import wal_of
from ai_whisperer.store.sqlite.statements import STATEMENTS

_log = logging.getLogger(__name__)

APPLICATION_ID = 0x57485350
_CHECKED_BYTES = 16 << 20
"""Up to this size the whole file is checked when it is opened; a larger one shows its faults when they are read."""


_GIVE_BACK = "PRAGMA auto_vacuum=INCREMENTAL"
_INCREMENTAL = 2
_REBUILT_BYTES = 256 << 20
"""Up to this size a database that cannot become smaller is rebuilt once when it is opened: a second or two."""
_LOG_BYTES = 16 << 20
"""A write-ahead log that has grown larger is cut when it begins anew."""


def open_database(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    """Open or create the database for writing; raises a `StoreError` and leaves a file that is not ours as it is."""
    try:
        check_file(path, vfs=vfs)
        if vfs is None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # its log and its index are as private as it is
        connection = apsw.Connection(str(path), vfs=vfs)
        try:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.execute(_GIVE_BACK)  # for a new one, before its first page is written
            _log_writes_ahead(connection, path)
            connection.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA secure_delete=FAST")  # no copy stays where a row was changed or moved
            migrate(connection)
            finish_deletions(connection, path.parent)
            _let_give_back(connection, path)
            if not gives_back(connection):
                connection.execute("PRAGMA secure_delete=ON")  # pages that become free stay in the file
        except BaseException:
            connection.close()
            raise
    except apsw.Error as error:
        raise explained(error, path) from error
    return connection


def _log_writes_ahead(connection: apsw.Connection, path: Path) -> None:
    """Have a write-ahead log. SQLite tells that it could not after the row that it answers with, or only by that row.

    It would go on with a journal whose deletion, which is the commit, is not synced: a power cut could take it back.
    """
    ((mode,),) = connection.execute("PRAGMA journal_mode=WAL")
    if mode != "wal":
        raise StoreError(
            f"'{path}' cannot have a write-ahead log (its journal mode stays '{mode}'): a power cut could take back "
            "what was accepted. Check whether the disk is full or failing, or choose another data folder."
        )


def open_reader(path: Path, *, vfs: str | None = None) -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute("PRAGMA query_only=1")
    except BaseException:
        connection.close()
        raise
    return connection


_ADVICE = (
    "Restore a backup of the database together with its write-ahead log. To start without what is missing: `whisperer "
    "serve --accept-loss`, once, or ai_whisperer.accept_loss() in Python. Nothing was changed."
)


def latest_version() -> int:
    return len(migrations())


def database_version(path: Path) -> int:
    """The version of an existing database that nobody has open; raises a `StoreError` if it cannot be used."""
    try:
        check_file(path)
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


def check_file(path: Path, *, vfs: str | None = None) -> None:
    """Look at a database through a connection that cannot change it, and at what should be in it, if it is not there.

    Raises a `StoreError` if it cannot be used as it is, or an `apsw.Error`.
    """
    claim = read_claim(path.parent)
    if not path.exists() or path.stat().st_size == 0:
        _check_new(path, claim)
        _check_no_log(path, claim)
        return
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a log that was left over stays as it is
        connection.execute("PRAGMA query_only=1")
        ((application_id,),) = connection.execute("PRAGMA application_id")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if application_id == 0 and tables == 0:
            _check_new(path, claim)  # made, but not filled: the process that made it died, or the log is gone
            return
        check_ours(connection, path)
        _check_intact(connection, path)
        _check_complete(connection, path, claim)
    finally:
        connection.close()


def check_ours(connection: apsw.Connection, path: Path) -> None:
    """Raise a `StoreError` unless it is a database of this program, of a version that is known here."""
    ((application_id,),) = connection.execute("PRAGMA application_id")
    if application_id != APPLICATION_ID:
        raise StoreCorruptError(
            f"'{path}' is a database of another program. Choose another data folder; the file was left as it is."
        )
    ((version,),) = connection.execute("PRAGMA user_version")
    if version > latest_version():
        raise StoreVersionError(
            f"'{path}' has version {version}, this AI Whisperer knows versions up to {latest_version()}. "
            "Upgrade AI Whisperer; the file was left as it is."
        )


def _check_intact(connection: apsw.Connection, path: Path) -> None:
    if path.stat().st_size <= _CHECKED_BYTES:
        findings = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        if findings != ["ok"]:
            raise StoreCorruptError(
                f"'{path}' is damaged ({findings[0]}). Restore a backup or choose another data folder; "
                "the file was left as it is."
            )


def _check_complete(connection: apsw.Connection, path: Path, claim: Claim | None) -> None:
    """What was acknowledged last is there, and is what it was."""
    if claim is None or claim.accepted or not claim.seq:
        return
    if list(connection.execute(queries.NOTIFICATION_AT, (claim.session_id, claim.seq))) == [(claim.at,)]:
        return
    ((there,),) = connection.execute(queries.LAST_SEQ, (claim.session_id,))
    what = f"the log of that session ends at {there}" if there < claim.seq else "something else is there under it"
    raise StoreLostError(
        f"The database in '{path.parent}' has lost what was acknowledged: the last was {claim}, and {what}. "
        f"Its write-ahead log was deleted or damaged, or an older database was put there. {_ADVICE}"
    )


def _check_new(path: Path, claim: Claim | None) -> None:
    """A database that is new is the first in its folder."""
    if claim is not None and claim.accepted:
        return
    folder = path.parent
    if claim is not None and claim.seq:
        why = f"what was acknowledged last in this folder is {claim}"
    elif (folder / ACKNOWLEDGED_NAME).exists():
        why = f"there was one, as '{ACKNOWLEDGED_NAME}' says"
    elif (trace := next(traces_in(folder), None)) is not None:
        why = f"agents have worked here, as '{trace.relative_to(folder)}' shows"
    else:
        return
    raise StoreLostError(f"There is no database in '{folder}', or an empty one, and {why}. {_ADVICE}")


def _check_no_log(path: Path, claim: Claim | None) -> None:
    """A log belongs to a database that has its first page. (A maker that died may have left one that has no more.)"""
    wal = wal_of(path)
    if (claim is None or not claim.accepted) and wal.exists() and wal.stat().st_size > 0:
        raise StoreLostError(
            f"There is no database in '{path.parent}', or an empty one, and its write-ahead log '{wal.name}' is there. "
            f"{_ADVICE}"
        )


@cache
def migrations() -> tuple[str, ...]:
    """The scripts that make the tables, in their order. A database has as many of them as its version says."""
    folder = Path(__file__).parent / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)


def migrate(connection: apsw.Connection) -> None:
    """Apply the migrations that the database does not have yet, all of them or none."""
    ((version,),) = connection.execute("PRAGMA user_version")
    missing = migrations()[version:]
    if not missing:
        return
    with connection:
        for script in missing:
            connection.execute(script)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={version + len(missing)}")


def gives_back(connection: apsw.Connection) -> bool:
    """Whether pages that hold nothing can be given back to the file system."""
    ((mode,),) = connection.execute("PRAGMA auto_vacuum")
    return bool(mode == _INCREMENTAL)


def _let_give_back(connection: apsw.Connection, path: Path) -> None:
    """Rebuild a database of an earlier version so that it can become smaller, if the disk has room for that."""
    if gives_back(connection) or path.stat().st_size > _REBUILT_BYTES:
        return
    try:
        connection.execute(_GIVE_BACK)
        connection.execute("VACUUM")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.FullError, apsw.BusyError, apsw.LockedError) as error:
        _log.warning("the database keeps its size when sessions are deleted, since it cannot be rebuilt (%s)", error)


def finish_deletions(connection: apsw.Connection, folder: Path) -> None:
    """Delete what is left of the sessions that were being deleted or imported when the process ended."""
    for (session_id,) in list(connection.execute(queries.DELETIONS)):
        from ai_whisperer.store import archive

        archive.discard(folder / WORK / file_name(session_id))
        for operation in DELETE_SOME.values():
            connection.execute(STATEMENTS[operation], (session_id, -1))
        connection.execute(STATEMENTS[DELETE_DELETION], (session_id,))
        connection.execute("PRAGMA incremental_vacuum").fetchall()
