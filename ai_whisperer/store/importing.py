"""Bringing in an exported session: in slices under a mark.

A session that was not imported to its end is deleted when the database is opened again, so it is there whole or not at
all.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.file_names import file_name
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.tags import checked_needs
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import ArchiveError, DuplicateIdError, InvalidInputError, StoreRefusedError
from ai_whisperer.store import tables
from ai_whisperer.store.base import Unit
from ai_whisperer.store.layout import WORK, place_aside
from ai_whisperer.store.operations import DELETE_DELETION, PUT_DELETION, RowOperation, Verb
from ai_whisperer.store.tables import OF_A_SESSION, Column, Kind, Row, Table

if TYPE_CHECKING:
    from ai_whisperer.store.archive import Progress, Reader, TransferReport

ROWS = "rows/"
_SLICE_ROWS = 200
INSERTS: dict[Table[Any], RowOperation[Any]] = {table: RowOperation(Verb.INSERT, table) for table in OF_A_SESSION}


class StoreImport:
    """The part of the store that takes sessions in. See `Store` for the contract."""

    _deleting: set[str]

    def __init__(self) -> None:
        self._undoing: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def claim(self, session_id: str) -> bool: ...

    @abstractmethod
    async def release(self, session_id: str) -> None: ...

    @abstractmethod
    def submit(self, unit: Unit) -> asyncio.Future[None]: ...

    @abstractmethod
    async def flushed(self) -> None: ...

    @abstractmethod
    async def session(self, session_id: str) -> SessionRecord | None: ...

    @abstractmethod
    async def unlisted_sessions(self) -> list[str]: ...

    @abstractmethod
    def _schema(self) -> int:
        """The version of the tables."""

    @abstractmethod
    def _check_not_deleting(self, session_id: str) -> None: ...

    @abstractmethod
    async def _delete_rest(self, session_id: str) -> None: ...

    async def import_session(
        self,
        file: Path,
        *,
        owner: str,
        data: Path,
        session_id: str | None = None,
        on_progress: Progress = lambda _: None,
    ) -> TransferReport:
        from ai_whisperer.store import archive

        with archive.read(file, kind="session", schema=self._schema()) as reader:
            await asyncio.to_thread(reader.check, lambda part: on_progress(part * 0.3))
            record = _record_in(reader, file)
            name = record.id if session_id is None else checked_id(session_id)
            work = data / WORK / file_name(name)
            async with self._importing(name, work):
                rows = {}
                for number, table in enumerate(OF_A_SESSION):
                    rows[table.name] = await self._inserted(reader, file, table, name)
                    on_progress(0.3 + (number + 1) / len(OF_A_SESSION) * 0.6)
                if reader.files:
                    await _to_its_end(lambda: _extracted(reader, work, data))
                done = Unit()
                done.insert_session(replace(record, id=name, owner=owner))
                done.changes.append((DELETE_DELETION, (name,)))
                await self.submit(done)
        on_progress(1.0)
        return archive.TransferReport(session_id=name, file=str(file), rows=counted(rows), files=len(reader.files))

    @asynccontextmanager
    async def _importing(self, session_id: str, work: Path) -> AsyncIterator[None]:
        """Let nobody open or make a session of this id while its rows and files are written; if that fails, they go.

        Raises `DuplicateIdError` if there is one.
        """
        self._check_not_deleting(session_id)
        self._deleting.add(session_id)
        is_taken = False
        try:
            is_taken = await self.claim(session_id)
            await self._check_free(session_id)
            begun = Unit()
            begun.changes.append((PUT_DELETION, (session_id,)))
            await self.submit(begun)
        except BaseException:
            self._deleting.discard(session_id)
            if is_taken:
                await self.release(session_id)
            raise
        try:
            yield
        except BaseException:
            undoing = asyncio.create_task(self._undone(session_id, work), name=f"rest of the import of {session_id}")
            self._undoing.add(undoing)
            undoing.add_done_callback(self._undoing.discard)
            undoing.add_done_callback(lambda done: None if done.cancelled() else done.exception())
            raise
        self._deleting.discard(session_id)

    async def _undone(self, session_id: str, work: Path) -> None:
        """Delete what was written so far. What is left if that fails goes when the store is opened again."""
        from ai_whisperer.store import archive

        await asyncio.to_thread(archive.discard, work)
        await self._delete_rest(session_id)
        await self.release(session_id)

    async def _imports_undone(self) -> None:
        """Wait until what was written of imports that failed is deleted."""
        if self._undoing:
            await asyncio.wait(self._undoing)

    async def _check_free(self, session_id: str) -> None:
        await self.flushed()  # with a session that was made a moment ago
        if await self.session(session_id) is not None or session_id in await self.unlisted_sessions():
            raise DuplicateIdError(
                f"There is a session '{session_id}' already; nothing was changed. Import it under another id (--as)."
            )

    async def _inserted(self, reader: Reader, file: Path, table: Table[Any], session_id: str) -> int:
        """Insert the rows of a table, slice by slice, which are read in a thread; returns how many there are."""
        name, count = f"{ROWS}{table.name}.jsonl", 0
        if name not in reader.manifest.members:
            return 0  # the version that made the file had no such table
        slices = _slices(reader, file, name, table, session_id)
        while rows := await asyncio.to_thread(next, slices, None):
            unit = Unit()
            unit.changes += [(INSERTS[table], row) for row in rows]
            try:
                await self.submit(unit)
            except StoreRefusedError as error:
                raise ArchiveError(
                    f"'{file}' has rows that do not go together: {name} ({error.message}) Nothing was changed."
                ) from error
            count += len(rows)
        return count


async def _to_its_end(work: Callable[[], None]) -> None:
    """Do it in a thread, and return when that has ended: also if whoever waits is cancelled, who is told then."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        doing.exception()
        raise


def _extracted(reader: Reader, work: Path, data: Path) -> None:
    """Write the files of the session. What a session of its id has left there that is gone is set aside."""
    if work.exists():
        aside = place_aside(data)
        (aside / WORK).mkdir(mode=0o700, parents=True)
        work.rename(aside / WORK / work.name)
    reader.extract_files(work)


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
        record = msgspec.json.decode(b"".join(reader.pieces("session.json")), type=SessionRecord)
        return replace(record, needs=checked_needs(record.needs))
    except (KeyError, msgspec.MsgspecError, InvalidInputError) as error:
        raise ArchiveError(f"'{file}' does not say which session it is ({error}). Nothing was changed.") from error


def _row_of(table: Table[Any], line: Mapping[str, Any], session_id: str) -> Row:
    """A line as a row; what an earlier version did not write gets the value that it has by default."""
    given = {**line, "session_id": session_id}
    if table is tables.NOTIFICATION:
        note = msgspec.convert(line, _Told)
        params = msgspec.json.encode(note.params).decode()
        return session_id, note.seq, note.name, note.cause, note.at, params, None, None
    unknown = given.keys() - {column.name for column in table.columns}
    if unknown:
        raise ValueError(f"there is no {min(unknown)}")
    defaults = table.defaults
    values = tuple(
        _kept(column, given[column.name]) if column.name in given else defaults[column.name] for column in table.columns
    )
    table.read(values[table.columns_beside :])  # raises what is wrong with it
    return values


class _Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the log."""

    seq: Annotated[int, msgspec.Meta(ge=1)]
    name: str
    cause: str
    at: float
    params: dict[str, Any]


_TYPES = {Kind.TEXT: str, Kind.INTEGER: int, Kind.REAL: float, Kind.BOOLEAN: bool, Kind.BYTES: bytes}


def _kept(column: Column, value: Any) -> Any:
    """The value as the column holds it; raises `ValueError` if it cannot."""
    if value is None and column.is_nullable:
        return None
    if column.kind is Kind.JSON:
        return msgspec.json.encode(value).decode()
    if column.kind is Kind.REAL and isinstance(value, str):
        return float(value)  # one without an end
    try:
        return msgspec.convert(value, _TYPES[column.kind])
    except msgspec.ValidationError as error:
        raise ValueError(f"{column.name}: {error}") from error


def counted(rows: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in rows.items() if count}
