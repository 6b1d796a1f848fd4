"""Copying a data folder into PostgreSQL: table by table, a page at a time, until both have the same rows.

A page that is the same is left as it is, so a copy that was cut short goes on where it was. At the end all pages are
compared once more. Until that has ended well no server takes the database.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec
from asyncpg import Connection

from ai_whisperer.core.moments import moment
from ai_whisperer.errors import StoreError, StoreFailedError, StoreInUseError, StoreMovedError
from ai_whisperer.store import tables
from ai_whisperer.store.archive import Progress
from ai_whisperer.store.folder_lock import lock_folder
from ai_whisperer.store.moved import Moved, check_not_moved, find_moved, mark_moved
from ai_whisperer.store.postgresql import migrating
from ai_whisperer.store.postgresql.addresses import shown
from ai_whisperer.store.postgresql.connecting import LOST, check_server, explained
from ai_whisperer.store.postgresql.lane import Lane
from ai_whisperer.store.postgresql.statements import EPOCH, names
from ai_whisperer.store.sqlite import opening
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.tables import OF_A_SESSION, Kind, Row, Table

PAGE_ROWS = 500
_ROW = "row"
_NUMBERED = (tables.TASK, tables.EVENT)
"""The tables that count their rows as they come: they are read in that order."""
_TABLES: tuple[Table[Any], ...] = (tables.SHAPE, tables.DELETION, tables.SESSION, *OF_A_SESSION)


class CopyReport(msgspec.Struct, frozen=True, kw_only=True):
    """A copy that has ended: the rows of each table, and how many had to be written or mended in this run.

    `was_done` is whether it had ended before, and was only compared now.
    """

    folder: str
    address: str
    rows: dict[str, int]
    written: int
    mended: int
    was_done: bool = False


async def copy_folder(folder: str | Path, address: str, *, on_progress: Progress = lambda _: None) -> CopyReport:
    """Copy the database of a data folder that nobody uses into a PostgreSQL database that has no sessions.

    The folder keeps its sessions as they are, and the files of agents, and is marked: nobody opens it without being
    told where its sessions are. It is marked before a server can take the database. Raises a `StoreError`; call it
    again to go on, or to be told that it is done. A folder whose sessions were copied to another address is a
    `StoreMovedError`.
    """
    path = Path(folder) / DATABASE_NAME
    if not path.exists():
        raise StoreError(f"There is no database in '{folder}'. Name the data folder; nothing was changed.")
    lock = lock_folder(Path(folder))
    lane = Lane(address, name="whisperer store copy")
    try:
        check_not_moved(Path(folder), except_to=shown(address))
        with closing(opening.open_database(path)) as source:
            connection = await lane.connected()
            await check_server(connection, address)
            await lane.take()
            await migrating.migrate(connection, address)
            copying = _Copying(source, connection)
            if not await _begun(connection):
                moved = find_moved(Path(folder))
                if moved is None:
                    raise StoreInUseError(
                        f"The database at {shown(address)} has sessions already; nothing was changed. Copy into an "
                        "empty one."
                    )
                await copying.check_done(moved)
                return copying.report(folder, address, was_done=True)
            for number, table in enumerate(_TABLES):
                await copying.copy(table)
                on_progress((number + 1) / len(_TABLES) * 0.8)
            report = copying.report(folder, address)
            await copying.check(address)
            mark_moved(Path(folder), Moved(address=shown(address), at=time.time()))  # never are both for use
            await connection.execute("UPDATE meta SET state=$1", migrating.READY)
            on_progress(1.0)
            return report
    except apsw.Error as error:
        raise opening.explained(error, path) from error
    except (asyncpg.PostgresError, *LOST, ValueError) as error:
        raise explained(error, address) from error
    finally:
        await lane.close()
        lock.release()


async def _begun(connection: Connection) -> bool:
    """Mark the database, so that nobody uses what is not whole; False if it has sessions, and nothing is changed."""
    if await connection.fetchval("SELECT state FROM meta") == migrating.COPYING:
        return True
    if await connection.fetchval("SELECT EXISTS (SELECT 1 FROM session) OR EXISTS (SELECT 1 FROM notification)"):
        return False
    await connection.execute("UPDATE meta SET state=$1", migrating.COPYING)
    return True


class _Copying:
    """Makes the tables of one database those of the other."""

    def __init__(self, source: apsw.Connection, target: Connection) -> None:
        self._source = source
        self._target = target
        self.rows: dict[str, int] = {}
        self.written = 0
        self.mended = 0

    async def copy(self, table: Table[Any]) -> None:
        """Write what is different, a page in each transaction."""
        self.rows[table.name] = 0
        before: Row | None = None
        for page in self._pages(table):
            last = _key_of(table, page[-1])
            if await self._there(table, before, last) != page:
                async with self._target.transaction():
                    await self._delete(table, before, last)
                    await self._insert(table, page)
                self.written += len(page)
            self.rows[table.name] += len(page)
            before = last
        await self._delete(table, before, None)
        if table in _NUMBERED:
            name = table.name
            last_row = f'SELECT coalesce(max("{_ROW}"), 0) + 1 FROM {name}'  # noqa: S608
            await self._target.execute(
                f"SELECT setval(pg_get_serial_sequence('{name}', '{_ROW}'), ({last_row}), false)"
            )

    async def check(self, address: str) -> None:
        """Raise `StoreFailedError` unless both have the same rows."""
        table = await self._first_other()
        if table is not None:
            raise StoreFailedError(
                f"The table '{table.name}' at {shown(address)} is not what was copied: something else writes to it. "
                "Stop that, and copy again."
            )

    async def check_done(self, moved: Moved) -> None:
        """Raise `StoreMovedError` unless both have the same rows, as when the copy ended and nobody was told."""
        if await self._first_other() is not None:
            raise StoreMovedError(
                f"The sessions of the folder were copied to {moved.address} on {moment(moved.at)}, and have changed "
                "there since. Start a server on that address; nothing was changed."
            )

    async def _first_other(self) -> Table[Any] | None:
        """The first table in which the two differ. Counts the rows on the way."""
        for table in _TABLES:
            self.rows[table.name] = 0
            before: Row | None = None
            for page in self._pages(table):
                last = _key_of(table, page[-1])
                if await self._there(table, before, last) != page:
                    return table
                self.rows[table.name] += len(page)
                before = last
            which, values = _between(table, before, None)
            if await self._target.fetchval(f'SELECT EXISTS (SELECT 1 FROM "{table.name}" WHERE {which})', *values):  # noqa: S608
                return table
        return None

    def report(self, folder: str | Path, address: str, *, was_done: bool = False) -> CopyReport:
        return CopyReport(
            folder=str(folder),
            address=shown(address),
            rows=self.rows,
            written=self.written,
            mended=self.mended,
            was_done=was_done,
        )

    def _pages(self, table: Table[Any]) -> Iterator[list[Row]]:
        """The rows of the folder in the order of their keys, as they can be kept."""
        kinds, own = [column.kind for column in table.columns], ""
        if table in _NUMBERED:
            kinds, own = [*kinds, Kind.INTEGER], ", rowid"
        rows = self._source.execute(f"SELECT *{own} FROM {table.name} ORDER BY {', '.join(table.key)}")  # noqa: S608
        page: list[Row] = []
        for row in rows:
            page.append(tuple(self._kept(kind, value) for kind, value in zip(kinds, row, strict=True)))
            if len(page) >= PAGE_ROWS:
                yield page
                page = []
        if page:
            yield page

    def _kept(self, kind: Kind, value: Any) -> Any:
        if kind is Kind.BOOLEAN:
            return None if value is None else bool(value)
        if isinstance(value, str) and "\0" in value:
            self.mended += 1
            return value.replace("\0", "\ufffd")
        return value

    async def _there(self, table: Table[Any], after: Row | None, last: Row) -> list[Row]:
        which, values = _between(table, after, last)
        sql = f'SELECT {names(_columns(table))} FROM "{table.name}" WHERE {which} ORDER BY {names(table.key)}'  # noqa: S608
        return [tuple(row) for row in await self._target.fetch(sql, *values)]

    async def _delete(self, table: Table[Any], after: Row | None, last: Row | None) -> None:
        which, values = _between(table, after, last)
        await self._target.execute(f'DELETE FROM "{table.name}" WHERE {which}', *values)  # noqa: S608

    async def _insert(self, table: Table[Any], page: Sequence[Row]) -> None:
        columns = _columns(table)
        if table is tables.NOTIFICATION:
            columns, page = [*columns, EPOCH], [(*row, 0) for row in page]
        await self._target.copy_records_to_table(table.name, records=page, columns=columns)


def _columns(table: Table[Any]) -> list[str]:
    return [*(column.name for column in table.columns), *([_ROW] if table in _NUMBERED else ())]


def _key_of(table: Table[Any], row: Row) -> Row:
    places = {column.name: place for place, column in enumerate(table.columns)}
    return tuple(row[places[name]] for name in table.key)


def _between(table: Table[Any], after: Row | None, last: Row | None) -> tuple[str, list[Any]]:
    """The condition for rows after this key up to that one, and its values."""
    key, parts = names(table.key), []
    values: list[Any] = []
    for sign, bound in ((">", after), ("<=", last)):
        if bound is not None:
            places = ", ".join(f"${len(values) + number}" for number in range(1, len(bound) + 1))
            parts.append(f"({key}){sign}({places})")
            values += bound
    return " AND ".join(parts) or "true", values
