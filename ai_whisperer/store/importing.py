"""Bringing in an exported session: in slices under a mark.

A session that was not imported to its end is deleted when the database is opened again, so it is there whole or not at
all.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.core.file_names import file_name
from ai_whisperer.core.paging import checked_id
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import ArchiveError, DuplicateIdError
from ai_whisperer.store import archive, tables
from ai_whisperer.store.archive import Progress, Reader, TransferReport
from ai_whisperer.store.base import Unit
from ai_whisperer.store.layout import WORK
from ai_whisperer.store.operations import DELETE_DELETION, PUT_DELETION, RowOperation, Verb
from ai_whisperer.store.tables import OF_A_SESSION, Column, Kind, Row, Table

ROWS = "rows/"
_SLICE_ROWS = 200
INSERTS: dict[Table[Any], RowOperation[Any]] = {table: RowOperation(Verb.INSERT, table) for table in OF_A_SESSION}


class StoreImport:
    """The part of the store that takes sessions in. See `Store` for the contract."""

    @abstractmethod
    def submit(self, unit: Unit) -> asyncio.Future[None]: ...

    @abstractmethod
    async def session(self, session_id: str) -> SessionRecord | None: ...

    @abstractmethod
    async def unlisted_sessions(self) -> list[str]: ...

    @abstractmethod
    def _schema(self) -> int:
        """The version of the tables."""

    @abstractmethod
    def importing(self, session_id: str) -> AbstractContextManager[None]: ...

    async def import_session(
        self,
        file: Path,
        *,
        owner: str,
        data: Path,
        session_id: str | None = None,
        on_progress: Progress = lambda _: None,
    ) -> TransferReport:
        with archive.read(file, kind="session", schema=self._schema()) as reader:
            await asyncio.to_thread(reader.check, lambda part: on_progress(part * 0.3))
            record = _record_in(reader, file)
            name = record.id if session_id is None else checked_id(session_id)
            if await self._is_taken(name):
                raise DuplicateIdError(
                    f"There is a session '{name}' already; nothing was changed. Import it under another id (--as)."
                )
            with self.importing(name):
                begun = Unit()
                begun.changes.append((PUT_DELETION, (name,)))
                await self.submit(begun)
                rows = {}
                for number, table in enumerate(OF_A_SESSION):
                    rows[table.name] = await self._inserted(reader, file, table, name)
                    on_progress(0.3 + (number + 1) / len(OF_A_SESSION) * 0.6)
                files = sum(each.startswith(archive.FILES) for each in reader.manifest.members)
                if files:
                    await asyncio.to_thread(reader.extract_files, data / WORK / file_name(name))
                done = Unit()
                done.insert_session(
                    SessionRecord(id=name, title=record.title, owner=owner, created_at=record.created_at)
                )
                done.changes.append((DELETE_DELETION, (name,)))
                await self.submit(done)
        on_progress(1.0)
        return TransferReport(session_id=name, file=str(file), rows=counted(rows), files=files)

    async def _is_taken(self, session_id: str) -> bool:
        if await self.session(session_id) is not None:
            return True
        return session_id in await self.unlisted_sessions()

    async def _inserted(self, reader: Reader, file: Path, table: Table[Any], session_id: str) -> int:
        """Insert the rows of a table, slice by slice, which are read in a thread; returns how many there are."""
        name, count = f"{ROWS}{table.name}.jsonl", 0
        if name not in reader.manifest.members:
            return 0  # the version that made the file had no such table
        slices = _slices(reader, file, name, table, session_id)
        while rows := await asyncio.to_thread(next, slices, None):
            unit = Unit()
            unit.changes += [(INSERTS[table], row) for row in rows]
            await self.submit(unit)
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


def _record_in(reader: Reader, file: Path) -> SessionRecord:
    try:
        return msgspec.json.decode(b"".join(reader.pieces("session.json")), type=SessionRecord)
    except (KeyError, msgspec.MsgspecError) as error:
        raise ArchiveError(f"'{file}' does not say which session it is ({error}). Nothing was changed.") from error


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
    if column.kind is Kind.REAL and isinstance(value, str):
        return float(value)
    return value


def counted(rows: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in rows.items() if count}
