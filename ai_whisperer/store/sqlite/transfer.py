"""One session as a file: JSON lines that people can read, a member for each table, and the session's files.

It is read at one moment of the database, whoever has the folder open.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from ai_whisperer.core.file_names import file_name
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import ArchiveError, UnknownSessionError
from ai_whisperer.settings import LOCAL
from ai_whisperer.store import archive, readers, tables
from ai_whisperer.store.archive import Progress, TransferReport
from ai_whisperer.store.importing import ROWS, counted
from ai_whisperer.store.layout import WORK
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.sqlite import opening, queries
from ai_whisperer.store.sqlite.backup import one_moment
from ai_whisperer.store.sqlite.store import SqliteStore
from ai_whisperer.store.tables import OF_A_SESSION, Column, Kind, Table

_IN_ORDER_OF_COMING = (tables.TASK, tables.EVENT)
"""Their rows are listed in the order in which they were inserted, so they are written in that order."""


def export_session(
    data: str | Path, session_id: str, file: str | Path, *, on_progress: Progress = lambda _: None
) -> TransferReport:
    """Write one session of a data folder to a file that is not there yet, also while a server has the folder.

    Raises `UnknownSessionError`, another `StoreError` or an `ArchiveError`.
    """
    folder, file = Path(data), Path(file)
    with one_moment(folder) as connection:
        record = _session_in(connection, session_id)
        schema = opening.latest_version()
        ((version,),) = connection.execute("PRAGMA user_version")
        if version != schema:
            raise ArchiveError(
                f"The database in '{folder}' has version {version}, and this AI Whisperer exports version {schema}. "
                "Start a server on it once, which brings it up to date."
            )
        with archive.written(
            file, kind="session", schema=schema, made_at=time.time(), session_id=session_id, title=record.title
        ) as writer:
            with writer.member("session.json") as write:
                write(msgspec.json.format(msgspec.json.encode(record), indent=2))
            rows = {}
            for number, table in enumerate(OF_A_SESSION):
                with writer.member(f"{ROWS}{table.name}.jsonl") as write:
                    rows[table.name] = 0
                    for line in _lines_of(connection, table, session_id):
                        write(msgspec.json.encode(line) + b"\n")
                        rows[table.name] += 1
                on_progress((number + 1) / len(OF_A_SESSION) * 0.9)
            before = len(writer.members)
            writer.add_files(folder / WORK / file_name(session_id))
            files = len(writer.members) - before
    on_progress(1.0)
    return TransferReport(session_id=session_id, file=str(file), rows=counted(rows), files=files)


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


def _session_in(connection: apsw.Connection, session_id: str) -> SessionRecord:
    found = [tables.SESSION.read(row) for row in connection.execute(queries.SESSION, (session_id,))]
    if found:
        return found[0]
    known = [str(row[0]) for row in connection.execute("SELECT id FROM session ORDER BY created_at DESC LIMIT 20")]
    raise UnknownSessionError(f"There is no session {session_id!r:.100}. There are: {', '.join(known) or 'none'}.")


def _lines_of(connection: apsw.Connection, table: Table[Any], session_id: str) -> Iterator[dict[str, Any]]:
    """The rows of a session as people read them: by the names of the columns, without the session and the packing."""
    order = "rowid" if table in _IN_ORDER_OF_COMING else ", ".join(table.key)
    sql = f"SELECT * FROM {table.name} WHERE session_id=? ORDER BY {order}"  # noqa: S608
    if table is tables.NOTIFICATION:
        shapes = [tables.SHAPE.read(row) for row in connection.execute(queries.SHAPES)]
        read = readers.notification_reader(Packing(shapes))
        for row in connection.execute(sql, (session_id,)):
            note = read(row)
            yield {"seq": note.seq, "name": note.name, "cause": note.cause, "at": note.at, "params": note.params}
        return
    with closing(connection.cursor()) as cursor:
        for row in cursor.execute(sql, (session_id,)):
            pairs = zip(table.columns, row, strict=True)
            yield {column.name: _shown(column, value) for column, value in pairs if column.name != "session_id"}


def _shown(column: Column, value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    if value is None or column.kind is not Kind.JSON:
        return bool(value) if value is not None and column.kind is Kind.BOOLEAN else value
    return msgspec.json.decode(value)
