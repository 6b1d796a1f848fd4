"""The PostgreSQL store: a database that one process has for itself, or that it shares with other nodes."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import asyncpg
import msgspec
from asyncpg import Connection
from msgspec.structs import replace

from ai_whisperer.core.file_names import file_name
from ai_whisperer.domain.nodes import Absence
from ai_whisperer.errors import SessionElsewhereError, StoreCorruptError, StoreError
from ai_whisperer.store import tables
from ai_whisperer.store.base import SessionSnapshot, StoreHealth
from ai_whisperer.store.folder_lock import FolderLock, lock_folder
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.layout import WORK
from ai_whisperer.store.packing import Packing, UnknownShapeError
from ai_whisperer.store.parts import StoreParts
from ai_whisperer.store.postgresql import connecting, migrating, node_queries, queries, retention_queries
from ai_whisperer.store.postgresql.lane import ALONE, Lane
from ai_whisperer.store.postgresql.placing import Placing
from ai_whisperer.store.postgresql.pool import Readers
from ai_whisperer.store.postgresql.registry import name_of
from ai_whisperer.store.postgresql.writing import PostgresqlWriter, fenced, went_back
from ai_whisperer.store.readers import notification_reader
from ai_whisperer.store.reading import Read
from ai_whisperer.store.tables import OF_A_SESSION, Row

PATIENCE_SECONDS = 30.0
_LEAVE_SECONDS = 3.0
_SIZE = "SELECT pg_database_size(current_database())"

_T = TypeVar("_T")


class Member(Protocol):
    """What beats for this process while the store is open."""

    async def stop(self) -> None:
        """Beat no more. The node is still in the book."""
        ...

    def abandon(self) -> None: ...


class PostgresqlStore(StoreParts):
    """See `Store` for the contract. Made by `open`."""

    is_far = True
    _queries = queries
    _retention = retention_queries

    def __init__(
        self,
        lane: Lane,
        writer: PostgresqlWriter,
        readers: Readers,
        packing: Packing,
        *,
        folder: Path | None,
        lock: FolderLock | None,
        placing: Placing | None = None,
    ) -> None:
        self._lane = lane
        self._writer = writer
        self._readers = readers
        self._packing = packing
        self._folder = folder
        self._lock = lock
        self.placing = placing
        self.member: Member | None = None
        self._read_notification = notification_reader(packing)
        super().__init__(GroupCommit(writer, packing))

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        folder: str | Path | None = None,
        work: Path | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
        host_id: str | None = None,
        enter: Callable[[], Awaitable[None]] | None = None,
    ) -> PostgresqlStore:
        """Take the database for this process, and make what is missing in it; raises a `StoreError`.

        `folder` is where the files of agents are, which this process has for itself too, unless these are in `work`. A
        connection that is lost is made again for so long as there is patience; then the store has failed. With a
        `host_id` the database is shared with other nodes: `enter` is called to join them once the tables are there, and
        sessions have to be claimed.
        """
        name = name_of(host_id) if host_id else f"whisperer {os.getpid()} {secrets.token_hex(4)}"
        place = None if folder is None else Path(folder)
        async with AsyncExitStack() as undo:
            lock = None
            if place is not None:
                lock = lock_folder(place)
                undo.callback(lock.release)
            lane = Lane(address, name=f"{name} writing" if host_id else name, shares=host_id is not None)
            undo.push_async_callback(lane.close)
            try:
                connection = await lane.connected()
                await connecting.check_server(connection, address)
                await lane.take()
                await migrating.migrate(connection, address)
                await migrating.check_ready(connection, address)
                if enter is not None:
                    await enter()
                epoch = 1 if host_id else await lane.begin()
                shapes = [tables.SHAPE.read(tuple(row)) for row in await connection.fetch(queries.SHAPES)]
            except (asyncpg.PostgresError, *connecting.LOST, ValueError) as error:
                raise connecting.explained(error, address) from error
            readers = Readers(address, name=f"{name} reading", patience_seconds=patience_seconds)
            placing = Placing(host_id, readers) if host_id else None
            writer = PostgresqlWriter(
                lane,
                writer=host_id or ALONE,
                epoch=epoch,
                claims=None if placing is None else placing.claims,
                patience_seconds=patience_seconds,
            )
            packing = Packing(shapes, numbered_by_content=True)
            store = cls(lane, writer, readers, packing, folder=work or place, lock=lock, placing=placing)
            undo.push_async_callback(readers.close)
            if placing is None:
                await store.finish_deletions()
            undo.pop_all()
        return store

    async def load(self, session_id: str) -> SessionSnapshot:
        snapshot = await super().load(session_id)
        if self.placing is None or not await self.placing.was_cut_off(session_id):
            return snapshot
        return replace(snapshot, was_cut_off=True)

    async def claim(self, session_id: str) -> bool:
        """Whoever has a session that was being deleted when its node ended deletes the rest."""
        if self.placing is None or not await self.placing.claim(session_id):
            return False
        self._groups.forget(session_id)
        self._writer.forget(session_id)
        try:
            if await self.placing.is_deleted(session_id):
                await self._finish_deletion(session_id)
        except BaseException:
            await self.placing.release(session_id)
            raise
        return True

    async def take(self, limit: int) -> list[str]:
        """Claim some of the sessions that have work and nobody."""
        if self.placing is None:
            return []
        taken = await self.placing.take(limit)
        for session_id in taken:
            self._groups.forget(session_id)
            self._writer.forget(session_id)
        return taken

    async def release(self, session_id: str, *, files_left: bool = False) -> None:
        if self.placing is not None:
            await self._groups.flushed()
            if self._groups.failure is None:
                await self.placing.release(session_id, files_left=files_left)

    def pinned(self, session_id: str) -> AbstractContextManager[None]:
        return nullcontext() if self.placing is None else self.placing.pinned(session_id)

    async def is_ours(self, session_id: str) -> bool:
        return self.placing is None or await self.placing.is_ours(session_id)

    def stop_absent(self, why: Absence) -> None:
        """The database does not have this node any more: nothing more is taken."""
        self._groups.stop(fenced() if why is Absence.LET_GO else went_back())

    async def finish_deletions(self) -> None:
        """Delete what is left of the sessions that were being deleted or imported when a process ended."""
        for session_id in await self._all(queries.DELETIONS, (), lambda row: str(row[0])):
            try:
                is_taken = await self.claim(session_id)
            except SessionElsewhereError:
                continue  # somebody is at it
            if is_taken:
                await self.release(session_id)
            elif self.placing is None:
                await self._finish_deletion(session_id)

    async def _finish_deletion(self, session_id: str) -> None:
        if self._folder is not None:
            from ai_whisperer.store import archive

            await asyncio.to_thread(archive.discard, self._folder / WORK / file_name(session_id))
        placing = self.placing

        async def delete(connection: Connection) -> None:
            async with connection.transaction():
                if placing is not None:
                    held = (placing.host_id, session_id, placing.claims[session_id])
                    if await connection.fetchval(node_queries.STILL_MINE, *held) is None:
                        return
                for table in OF_A_SESSION:
                    await connection.execute(f'DELETE FROM "{table.name}" WHERE session_id=$1', session_id)  # noqa: S608
                await connection.execute("DELETE FROM deletion WHERE session_id=$1", session_id)

        await self._readers.read(delete)

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
            await self._leave()
        finally:
            if self.member is not None:
                self.member.abandon()
            await self._readers.close()
            await self._lane.close()
            if self._lock is not None:
                self._lock.release()

    async def _leave(self) -> None:
        """Let the sessions of this node be nobody's. If the database does not answer, others find out by themselves."""
        if self.member is not None:
            await self.member.stop()
        if self.placing is not None and self._groups.failure is None:
            host_id = self.placing.host_id
            self.placing.claims.clear()
            with suppress(TimeoutError, StoreError):
                async with asyncio.timeout(_LEAVE_SECONDS):
                    await self._readers.read(lambda connection: connection.execute(node_queries.LEAVE, host_id))

    def abandon(self) -> None:
        """Let go of the database at once: what is not committed is lost, as when the process dies."""
        if self.member is not None:
            self.member.abandon()
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
            rows = await connection.fetch(sql, *bindings)
            try:
                return [convert(row) for row in rows]
            except UnknownShapeError:  # another node has made it
                self._packing.learn(tables.SHAPE.read(tuple(row)) for row in await connection.fetch(queries.SHAPES))
                return [convert(row) for row in rows]
        except asyncpg.CharacterNotInRepertoireError:
            return []  # nothing has such a name
        except connecting.LOST:
            raise
        except asyncpg.PostgresError as error:
            raise connecting.explained(error) from error
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreCorruptError(
                f"The database holds a row that cannot be read ({error}). Restore a backup; nothing was changed."
            ) from error
