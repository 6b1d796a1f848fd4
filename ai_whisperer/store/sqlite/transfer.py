"""One session of a data folder as a file, read at one moment of the database, whoever has the folder open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import ArchiveError
from ai_whisperer.settings import LOCAL
from ai_whisperer.store import readers, tables
from ai_whisperer.store.archive import Progress, TransferReport
from ai_whisperer.store.exporting import IN_ORDER_OF_COMING, exporting, line_of, line_of_note, unknown
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.sqlite import opening, queries
from ai_whisperer.store.sqlite.backup import one_moment
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.store import SqliteStore
from ai_whisperer.store.tables import OF_A_SESSION, Table

_SHOWN = 20


def export_from(folder: Path, session_id: str, file: Path, *, on_progress: Progress) -> TransferReport:
    """Write one session of a data folder to a file that is not there yet, also while a server has the folder.

    Raises `UnknownSessionError`, another `StoreError` or an `ArchiveError`.
    """
    with one_moment(folder) as connection:
        record = _session_in(connection, session_id)
        schema = opening.latest_version()
        ((version,),) = connection.execute("PRAGMA user_version")
        if version != schema:
            raise ArchiveError(
                f"The database in '{folder}' has version {version}, and this AI Whisperer exports version {schema}. "
                "Start a server on it once, which brings it up to date."
            )
        with exporting(file, record, schema=schema, data=folder, on_progress=on_progress) as export:
            for table in OF_A_SESSION:
                with export.table(table) as add:
                    for line in _lines_of(connection, table, session_id):
                        add(line)
    return export.report


def import_into_folder(
    data: str | Path,
    file: str | Path,
    *,
    session_id: str | None = None,
    on_progress: Progress = lambda _: None,
) -> TransferReport:
    """Bring an exported session into a data folder that nobody has open, under its own id or another that is free.

    It belongs to the local principal. Raises a `StoreError`, `DuplicateIdError` or an `ArchiveError`. Not to be called
    within an event loop.
    """

    async def bring() -> TransferReport:
        store = SqliteStore.open(data)
        try:
            return await store.import_session(
                Path(file), owner=LOCAL, data=Path(data), session_id=session_id, on_progress=on_progress
            )
        finally:
            await store.close()

    return asyncio.run(bring())


def copy_with_unlisted(data: Path, session_id: str, folder: Path) -> None:
    """See `ai_whisperer.store.transfer`."""
    with one_moment(data) as connection:
        unlisted = [str(row[0]) for row in connection.execute(queries.UNLISTED_SESSIONS)]
        if session_id not in unlisted:
            listed = [str(row[0]) for row in connection.execute(queries.SOME_SESSIONS)]
            raise unknown(session_id, [*listed, *unlisted[:_SHOWN]])
        with closing(apsw.Connection(str(folder / DATABASE_NAME))) as copy:
            with copy.backup("main", connection, "main") as copying:
                copying.step()
            copy.execute("PRAGMA journal_mode=DELETE")  # it is one file, without a log beside it


def _session_in(connection: apsw.Connection, session_id: str) -> SessionRecord:
    found = [tables.SESSION.read(row) for row in connection.execute(queries.SESSION, (session_id,))]
    if found:
        return found[0]
    raise unknown(session_id, [str(row[0]) for row in connection.execute(queries.SOME_SESSIONS)])


def _lines_of(connection: apsw.Connection, table: Table[Any], session_id: str) -> Iterator[bytes]:
    order = "rowid" if table in IN_ORDER_OF_COMING else ", ".join(table.key)
    sql = f"SELECT * FROM {table.name} WHERE session_id=? ORDER BY {order}"  # noqa: S608
    if table is tables.NOTIFICATION:
        shapes = [tables.SHAPE.read(row) for row in connection.execute(queries.SHAPES)]
        read = readers.notification_reader(Packing(shapes))
        for row in connection.execute(sql, (session_id,)):
            yield line_of_note(read(row))
        return
    with closing(connection.cursor()) as cursor:
        for row in cursor.execute(sql, (session_id,)):
            yield line_of(table, row)
