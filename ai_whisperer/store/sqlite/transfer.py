"""One session as a file, and back: JSON lines that people can read, a member for each table, and the session's files.

Exporting reads one moment of the database, whoever has the folder open. Importing writes in slices under a mark: a
session that was not imported to its end is deleted when the database is opened again, so it is there whole or not at
all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from ai_whisperer.core.file_names import file_name
from ai_whisperer.core.paging import checked_id
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import ArchiveError, DuplicateIdError, UnknownSessionError
from ai_whisperer.settings import LOCAL
from ai_whisperer.store import archive, tables
from ai_whisperer.store.archive import Progress, Reader, TransferReport
from ai_whisperer.store.base import Unit
from ai_whisperer.store.layout import WORK
from ai_whisperer.store.operations import DELETE_DELETION, PUT_DELETION, RowOperation, Verb
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.sqlite import opening, queries, readers
from ai_whisperer.store.sqlite.backup import one_moment
from ai_whisperer.store.sqlite.store import SqliteStore
from ai_whisperer.store.tables import OF_A_SESSION, Column, Kind, Row, Table

_ROWS = "rows/"
_SLICE_ROWS = 200
INSERTS: dict[Table[Any], RowOperation[Any]] = {table: RowOperation(Verb.INSERT, table) for table in OF_A_SESSION}


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
                with writer.member(f"{_ROWS}{table.name}.jsonl") as write:
                    rows[table.name] = 0
                    for line in _lines_of(connection, table, session_id):
                        write(msgspec.json.encode(line) + b"\n")
                        rows[table.name] += 1
                on_progress((number + 1) / len(OF_A_SESSION) * 0.9)
            before = len(writer.members)
            writer.add_files(folder / WORK / file_name(session_id))
            files = len(writer.members) - before
    on_progress(1.0)
    return TransferReport(session_id=session_id, file=str(file), rows=_counted(rows), files=files)


async def import_session(
    store: SqliteStore,
    file: str | Path,
    *,
    owner: str,
    data: Path,
    session_id: str | None = None,
    on_progress: Progress = lambda _: None,
) -> TransferReport:
    """Bring an exported session into a store, under its own id or another that is free.

    Raises `DuplicateIdError`, or an `ArchiveError` for what cannot be read; then nothing is left of it.
    """
    file = Path(file)
    with archive.read(file, kind="session", schema=opening.latest_version()) as reader:
        await asyncio.to_thread(reader.check, lambda part: on_progress(part * 0.3))
        record = _record_in(reader, file)
        name = record.id if session_id is None else checked_id(session_id)
        if await _is_taken(store, name):
            raise DuplicateIdError(
                f"There is a session '{name}' already; nothing was changed. Import it under another id (--as)."
            )
        with store.importing(name):
            begun = Unit()
            begun.changes.append((PUT_DELETION, (name,)))
            await store.submit(begun)
            rows = {}
            for number, table in enumerate(OF_A_SESSION):
                rows[table.name] = await _inserted(store, reader, file, table, name)
                on_progress(0.3 + (number + 1) / len(OF_A_SESSION) * 0.6)
            files = sum(each.startswith(archive.FILES) for each in reader.manifest.members)
            if files:
                await asyncio.to_thread(reader.extract_files, data / WORK / file_name(name))
            done = Unit()
            done.put_session(SessionRecord(id=name, title=record.title, owner=owner, created_at=record.created_at))
            done.changes.append((DELETE_DELETION, (name,)))
            await store.submit(done)
    on_progress(1.0)
    return TransferReport(session_id=name, file=str(file), rows=_counted(rows), files=files)


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
            return await import_session(
                store, file, owner=LOCAL, data=Path(data), session_id=session_id, on_progress=on_progress
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
    sql = f"SELECT * FROM {table.name} WHERE session_id=? ORDER BY {', '.join(table.key)}"  # noqa: S608
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
    if value is None or column.kind is not Kind.JSON:
        return bool(value) if value is not None and column.kind is Kind.BOOLEAN else value
    return msgspec.json.decode(value)


def _record_in(reader: Reader, file: Path) -> SessionRecord:
    try:
        return msgspec.json.decode(b"".join(reader.pieces("session.json")), type=SessionRecord)
    except (KeyError, msgspec.MsgspecError) as error:
        raise ArchiveError(f"'{file}' does not say which session it is ({error}). Nothing was changed.") from error


async def _is_taken(store: SqliteStore, session_id: str) -> bool:
    if await store.session(session_id) is not None:
        return True
    return session_id in await store.unlisted_sessions()


async def _inserted(store: SqliteStore, reader: Reader, file: Path, table: Table[Any], session_id: str) -> int:
    """Insert the rows of a table, slice by slice, which are read in a thread; returns how many there are."""
    name, count = f"{_ROWS}{table.name}.jsonl", 0
    if name not in reader.manifest.members:
        return 0  # the version that made the file had no such table
    slices = _slices(reader, file, name, table, session_id)
    while rows := await asyncio.to_thread(next, slices, None):
        unit = Unit()
        unit.changes += [(INSERTS[table], row) for row in rows]
        await store.submit(unit)
        count += len(rows)
    return count


def _slices(reader: Reader, file: Path, name: str, table: Table[Any], session_id: str) -> Iterator[list[Row]]:
    rows: list[Row] = []
    with reader.opened(name) as lines:
        for number, line in enumerate(lines, 1):
            try:
                rows.append(_row_of(table, msgspec.json.decode(line, type=dict[str, Any]), session_id))
            except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
                raise ArchiveError(
                    f"'{file}' has a line that cannot be read: {name}, line {number} ({error}). Nothing was changed."
                ) from error
            if len(rows) >= _SLICE_ROWS:
                yield rows
                rows = []
    if rows:
        yield rows


def _row_of(table: Table[Any], line: Mapping[str, Any], session_id: str) -> Row:
    """A line as a row; what an earlier version did not write gets the value that it has by default."""
    given = {**line, "session_id": session_id}
    if table is tables.NOTIFICATION:
        given["params"] = msgspec.json.encode(given["params"]).decode()
        return tuple(given.get(column.name) for column in table.columns)
    unknown = given.keys() - {column.name for column in table.columns}
    if unknown:
        raise ValueError(f"there is no {min(unknown)}")
    defaults = table.defaults
    values = tuple(
        _kept(column, given[column.name]) if column.name in given else defaults[column.name] for column in table.columns
    )
    table.read(values[table.columns_beside :])  # raises what is wrong with it
    return values


def _kept(column: Column, value: Any) -> Any:
    if column.kind is Kind.JSON:
        return None if value is None and column.is_nullable else msgspec.json.encode(value).decode()
    return value


def _counted(rows: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in rows.items() if count}
