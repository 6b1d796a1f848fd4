"""The connection that writes, and what it stands for: this process has the database, alone or with other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from asyncpg import Connection
from asyncpg.prepared_stmt import PreparedStatement

from ai_whisperer.errors import StoreInUseError
from ai_whisperer.store.postgresql.addresses import shown
from ai_whisperer.store.postgresql.connecting import LOST, connect
from ai_whisperer.store.postgresql.merging import Part, Wave
from ai_whisperer.store.postgresql.statements import arrays_of, statement_of

ALONE: Final = "main"
"""The writer that has the whole database."""
_IN_USE: Final = 0x57485350
"""The key of the lock that says that a process has the database: for itself, or, shared, as one of several nodes."""
_LOCK_SECONDS = 5.0
"""So long the end of a process that has just died is waited for."""
_PAUSE_SECONDS = 0.05
_CLOSE_SECONDS = 2.0
_MOST_STATEMENTS = 100
_MOST_SPARE_PARTS = 3
"""A statement that is there already is taken if it has no more parts that have nothing to do than these."""

_TAKE_EPOCH: Final = """
INSERT INTO writer AS known VALUES ($1, 1, 0) ON CONFLICT (id) DO UPDATE SET epoch=known.epoch+1, commits=0
RETURNING epoch"""
_HOLDER: Final = """
SELECT activity.application_name, host(activity.client_addr), activity.backend_start
FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locktype='advisory' AND granted AND objid=$1 AND classid=0
  AND pg_locks.database=(SELECT oid FROM pg_database WHERE datname=current_database())"""
_END_FORMER: Final = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE application_name=$1 AND pid<>pg_backend_pid() AND usename=current_user"""


class Fence(NamedTuple):
    """What a group proves before it is written: whose it is, and which group of it."""

    writer: str
    epoch: int
    number: int
    sessions: Sequence[str] = ()
    epochs: Sequence[int] = ()


class Lane:
    """One connection on which groups are written, made again when it is lost."""

    def __init__(self, address: str, *, name: str, shares: bool = False) -> None:
        """With `shares` other nodes have the database too, each with a writer of its own."""
        self._address = address
        self._name = name
        self._lock = f"SELECT pg_try_advisory_lock{'_shared' if shares else ''}($1)"
        self._connection: Connection | None = None
        self._was_connected = False
        self._statements: dict[tuple[frozenset[Part], bool], tuple[tuple[Part, ...], PreparedStatement]] = {}

    async def connected(self) -> Connection:
        """The connection. One that is made in place of another ends what that may still do, which has its locks."""
        if self._connection is None or self._connection.is_closed():
            self._statements.clear()
            connection = await connect(self._address, name=self._name, writes=True)
            try:
                if self._was_connected:
                    await connection.execute(_END_FORMER, self._name)
                await connection.fetchval(self._lock, _IN_USE)
                await _keep_commits_durable(connection)
            except BaseException:
                connection.terminate()
                raise
            self._connection, self._was_connected = connection, True
        return self._connection

    async def take(self) -> Connection:
        """Take the database for this process, or its share; raises `StoreInUseError` if another has it for itself."""
        connection = await self.connected()
        loop = asyncio.get_running_loop()
        until = loop.time() + _LOCK_SECONDS
        while not await connection.fetchval(self._lock, _IN_USE):
            if loop.time() >= until:
                raise StoreInUseError(await _in_use(connection, self._address))
            await asyncio.sleep(_PAUSE_SECONDS)
        return connection

    async def begin(self) -> int:
        """Let nobody write any more who had the database before; returns the epoch that is ours."""
        connection = await self.connected()
        return int(await connection.fetchval(_TAKE_EPOCH, ALONE))

    async def write(self, fence: Fence, waves: Sequence[Wave]) -> None:
        """Write a group: one statement, or for several waves one transaction."""
        connection = await self.connected()
        if len(waves) == 1:
            await self._run(connection, waves[0], fence)
            return
        async with connection.transaction():
            for number, wave in enumerate(waves):
                await self._run(connection, wave, None if number else fence)

    def lose(self) -> None:
        """Let go of the connection at once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*LOST):
                await connection.close(timeout=_CLOSE_SECONDS)

    async def _run(self, connection: Connection, wave: Wave, fence: Fence | None) -> None:
        parts, statement = await self._statement(connection, frozenset(wave), holds=fence is not None)
        values: list[Any] = [*(fence or ()), *arrays_of(parts, wave)]
        await statement.fetchval(*values)

    async def _statement(
        self, connection: Connection, wanted: frozenset[Part], *, holds: bool
    ) -> tuple[tuple[Part, ...], PreparedStatement]:
        """A prepared statement with these parts, and maybe a few more."""
        found = self._statements.get((wanted, holds))
        if found is not None:
            return found
        most = len(wanted) + _MOST_SPARE_PARTS
        near = [key for key in self._statements if key[1] is holds and len(key[0]) <= most and wanted < key[0]]
        if near:
            return self._statements[min(near, key=lambda key: len(key[0]))]
        parts = tuple(sorted(wanted, key=_order))
        statement = await connection.prepare(statement_of(parts, holds=holds))
        if len(self._statements) >= _MOST_STATEMENTS:
            del self._statements[next(iter(self._statements))]
        made = self._statements[wanted, holds] = parts, statement
        return made


async def holder_of(connection: Connection) -> str | None:
    """Who has the database, in words; None if nobody has."""
    holder = await connection.fetchrow(_HOLDER, _IN_USE)
    if holder is None:
        return None
    name, host, since = holder
    return f"{name}, from {host or 'this machine'}, since {since:%Y-%m-%d %H:%M:%S} UTC"


async def _in_use(connection: Connection, address: str) -> str:
    holder = await holder_of(connection)
    return (
        f"{'Another process' if holder is None else f'A process ({holder})'} has the database at {shown(address)}. "
        "Stop it, or choose another database."
    )


def _order(part: Part) -> tuple[str, str, tuple[str, ...]]:
    return part.table.name, part.verb.value, part.columns


async def _keep_commits_durable(connection: Connection) -> None:
    """What is acknowledged survives the server's death, whatever the server is set to."""
    if await connection.fetchval("SELECT current_setting('synchronous_commit')") == "off":
        await connection.execute("SET synchronous_commit = on")
