"""The SQLite store: a file for one process, or a database in memory for tests."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal, TypeVar

import apsw
import msgspec

from ai_whisperer.errors import StoreCorruptError
from ai_whisperer.store import tables
from ai_whisperer.store.base import StoreHealth, Unit
from ai_whisperer.store.folder_lock import lock_folder
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.layout import keep_out_of_git
from ai_whisperer.store.moved import check_not_moved
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.parts import StoreParts
from ai_whisperer.store.readers import notification_reader
from ai_whisperer.store.reading import Read
from ai_whisperer.store.sqlite import opening, queries, retention_queries
from ai_whisperer.store.sqlite.acknowledged import Acknowledged
from ai_whisperer.store.sqlite.committers import Committer, InlineCommitter, ThreadCommitter
from ai_whisperer.store.sqlite.custody import Custody
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.statements import FREE_PAGE, NOTHING
from ai_whisperer.store.sqlite.writing import SqliteWriter
from ai_whisperer.store.tables import Row

SLICE_PAGES = 100
"""So many free pages go at once; that holds the event loop up for about a millisecond."""

_T = TypeVar("_T")


class SqliteStore(StoreParts):
    """See `Store` for the contract. Made by `open` or `in_memory`."""

    _queries = queries
    _retention = retention_queries

    def __init__(
        self,
        writing: apsw.Connection,
        reading: apsw.Connection,
        committer: Committer,
        *,
        path: Path,
        custody: Custody | None = None,
    ) -> None:
        self._writing = writing
        self._reading = reading
        self._committer = committer
        self._path = path
        self._custody = custody
        self._gives_back = opening.gives_back(writing)
        self._writer = SqliteWriter(writing, committer, custody)
        packing = Packing(self._found(queries.SHAPES, (), tables.SHAPE.read))
        self._read_notification = notification_reader(packing)
        super().__init__(GroupCommit(self._writer, packing))

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        vfs: str | None = None,
        committer: Committer | None = None,
        synchronous: Literal["FULL", "OFF"] = "FULL",
    ) -> SqliteStore:
        """Open the database in the folder, or make both; raises a `StoreError` that says what to do.

        Something that was acknowledged and is missing is such an error, `StoreLostError`: see `accept_loss`. So is
        `StoreMovedError`, if the sessions were copied to PostgreSQL: see `use_folder`.
        `synchronous="OFF"` gives up durability for speed, for tests on simulated disks.
        """
        folder = Path(folder)
        path = folder / DATABASE_NAME
        with ExitStack() as undo:
            lock = lock_folder(folder)
            undo.callback(lock.release)
            check_not_moved(folder)
            keep_out_of_git(folder)
            writing = opening.open_database(path, vfs=vfs)
            undo.callback(_closed, writing)
            try:
                writing.pragma("synchronous", synchronous)
                reading = opening.open_reader(path, vfs=vfs)
            except apsw.Error as error:
                raise opening.explained(error, path) from error
            undo.callback(_closed, reading)
            acknowledged = Acknowledged(folder, synced=synchronous == "FULL")
            undo.callback(acknowledged.close)
            if committer is None:
                committer = ThreadCommitter()
                committer.prepare(writing)
            custody = Custody(path, writing, lock, acknowledged)
            store = cls(writing, reading, committer, path=path, custody=custody)
            undo.pop_all()
        return store

    @classmethod
    def in_memory(cls) -> SqliteStore:
        """A store that ends when it is closed.

        Nothing of it is ever done on another thread, so that SQLite need not guard each of its calls.
        """
        uri = f"file:/{uuid.uuid4().hex}?vfs=memdb"
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        flags |= apsw.SQLITE_OPEN_NOMUTEX
        writing = apsw.Connection(uri, flags=flags)
        opening.migrate(writing)
        return cls(writing, apsw.Connection(uri, flags=flags), InlineCommitter(), path=Path(":memory:"))

    @property
    def health(self) -> StoreHealth:
        return StoreHealth(self._groups.failure, self._groups.commit_seconds, self._committer.warning)

    def _schema(self) -> int:
        return opening.latest_version()

    async def database_bytes(self) -> tuple[int, int]:
        ((pages, free, size),) = self._found(queries.DATABASE_SIZE, (), tuple)
        return pages * size, free * size

    async def _give_back(self) -> None:
        """Give back the pages that hold nothing, in slices; then the file is smaller, and its log is empty."""
        while free := self._pages_to_free():
            unit = Unit()
            unit.changes += [(FREE_PAGE, ())] * min(free, SLICE_PAGES)
            unit.changes.append((NOTHING, ()))
            await self._groups.submit(unit)
        last = Unit()
        last.changes.append((NOTHING, ()))
        self._committer.empty_log_soon()
        await self._groups.submit(last)

    def _pages_to_free(self) -> int:
        return self._found(queries.FREE_PAGES, (), lambda row: int(row[0]))[0] if self._gives_back else 0

    async def close(self) -> None:
        try:
            await self._imports_undone()
            await self._groups.flushed()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the database at once: what is not committed is lost, as when the process dies.

        Raises `StoreFailedError` if the disk does not answer. Nothing is let go of then: a commit may be under way.
        """
        self._committer.close()
        _closed(self._reading)
        _closed(self._writing)
        if self._custody is not None:
            self._custody.close()

    async def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]:
        return self._found(sql, bindings, convert)

    async def _at_one_moment(self, reading: Callable[[Read], Awaitable[_T]]) -> _T:
        return await reading(self._all)  # nobody writes to a session that is being loaded, nor does this give way

    def _found(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]:
        try:
            return [convert(row) for row in self._reading.execute(sql, bindings)]
        except apsw.Error as error:
            raise opening.explained(error, self._path) from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreCorruptError(
                f"'{self._path}' holds a row that cannot be read ({error}). Restore a backup; nothing was changed."
            ) from error


def _closed(connection: apsw.Connection) -> None:
    with suppress(apsw.Error):
        connection.close()  # on a failing disk the checkpoint at the end fails; the log has everything
