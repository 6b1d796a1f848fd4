"""The PostgreSQL store: a database that one process has for itself, whichever machine it is on."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg
import msgspec
from asyncpg import Connection

from ai_whisperer.core.file_names import file_name
from ai_whisperer.errors import StoreCorruptError
from ai_whisperer.store import tables
from ai_whisperer.store.base import StoreHealth
from ai_whisperer.store.folder_lock import FolderLock, lock_folder
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.layout import WORK
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.parts import StoreParts
from ai_whisperer.store.postgresql import connecting, migrating, queries, retention_queries
from ai_whisperer.store.postgresql.addresses import shown
from ai_whisperer.store.postgresql.lane import Lane
from ai_whisperer.store.postgresql.pool import Readers
from ai_whisperer.store.postgresql.writing import PostgresqlWriter
from ai_whisperer.store.readers import notification_reader
from ai_whisperer.store.reading import Read
from ai_whisperer.store.tables import OF_A_SESSION, Row

PATIENCE_SECONDS = 30.0
_SIZE = "SELECT pg_database_size(current_database())"

_T = TypeVar("_T")


class PostgresqlStore(StoreParts):
    """See `Store` for the contract. Made by `open`."""

    _queries = queries
    _retention = retention_queries

    def __init__(
        self,
        lane: Lane,
        writer: PostgresqlWriter,
        readers: Readers,
        packing: Packing,
        *,
        address: str,
        lock: FolderLock | None,
    ) -> None:
        self._address = address
        self._lane = lane
        self._writer = writer
        self._readers = readers
        self._lock = lock
        self._read_notification = notification_reader(packing)
        super().__init__(GroupCommit(writer, packing))

    @classmethod
    async def open(
        cls, address: str, *, folder: str | Path | None = None, patience_seconds: float = PATIENCE_SECONDS
    ) -> PostgresqlStore:
        """Take the database for this process, and make what is missing in it; raises a `StoreError`.

        `folder` is where the files of agents are, which this process has for itself too. A connection that is lost is
        made again for so long as there is patience; then the store has failed.
        """
        name = f"whisperer {os.getpid()} {secrets.token_hex(4)}"
        async with AsyncExitStack() as undo:
            lock = None
            if folder is not None:
                lock = lock_folder(Path(folder))
                undo.callback(lock.release)
            lane = Lane(address, name=name)
            undo.push_async_callback(lane.close)
            try:
                connection = await lane.connected()
                await connecting.check_server(connection, address)
                await lane.take()
                await migrating.migrate(connection, address)
                await migrating.check_ready(connection, address)
                epoch = await lane.begin()
                await finish_deletions(connection, None if folder is None else Path(folder))
                shapes = [tables.SHAPE.read(tuple(row)) for row in await connection.fetch(queries.SHAPES)]
            except (asyncpg.PostgresError, *connecting.LOST, ValueError) as error:
                raise connecting.explained(error, address) from error
            writer = PostgresqlWriter(lane, address, epoch=epoch, patience_seconds=patience_seconds)
            readers = Readers(address, name=f"{name} reading", patience_seconds=patience_seconds)
            store = cls(lane, writer, readers, Packing(shapes), address=address, lock=lock)
            undo.pop_all()
        return store

    @property
    def health(self) -> StoreHealth:
        return StoreHealth(self._groups.failure, self._groups.commit_seconds, self._writer.warning)

    async def database_bytes(self) -> tuple[int, int]:
        """PostgreSQL uses what holds nothing for other rows, by itself: how much that is, it does not tell."""
        return (await self._all(_SIZE, (), lambda row: int(row[0])))[0], 0

    async def close(self) -> None:
        try:
            await self._imports_undone()
            await self._groups.flushed()
        finally:
            await self._readers.close()
            await self._lane.close()
            if self._lock is not None:
                self._lock.release()

    def abandon(self) -> None:
        """Let go of the database at once: what is not committed is lost, as when the process dies."""
        self._writer.abandon()
        self._readers.abandon()
        if self._lock is not None:
            self._lock.release()

    def _schema(self) -> int:
        return migrating.latest_version()

    async def _give_back(self) -> None:
        """PostgreSQL does that by itself: it does not overwrite what is deleted, but uses the place again."""

    async def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]:
        return await self._readers.read(lambda connection: self._found(connection, sql, bindings, convert))

    async def _at_one_moment(self, reading: Callable[[Read], Awaitable[_T]]) -> _T:
        async def of_one_moment(connection: Connection) -> _T:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await reading(partial(self._found, connection))

        return await self._readers.read(of_one_moment)

    async def _found(self, connection: Connection, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]:
        try:
            return [convert(row) for row in await connection.fetch(sql, *bindings)]
        except asyncpg.CharacterNotInRepertoireError:
            return []  # nothing has such a name
        except connecting.LOST:
            raise
        except asyncpg.PostgresError as error:
            raise connecting.explained(error, self._address) from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreCorruptError(
                f"The database at {shown(self._address)} holds a row that cannot be read ({error}). Restore a backup; "
                "nothing was changed."
            ) from error


async def finish_deletions(connection: Connection, folder: Path | None) -> None:
    """Delete what is left of the sessions that were being deleted or imported when the process ended."""
    for (session_id,) in await connection.fetch(queries.DELETIONS):
        if folder is not None:
            from ai_whisperer.store import archive

            archive.discard(folder / WORK / file_name(session_id))
        async with connection.transaction():
            for table in OF_A_SESSION:
                await connection.execute(f'DELETE FROM "{table.name}" WHERE session_id=$1', session_id)  # noqa: S608
            await connection.execute("DELETE FROM deletion WHERE session_id=$1", session_id)
