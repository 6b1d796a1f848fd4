"""Connections to the simulated database: what is sent takes time both ways, and either side may be gone meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from typing import Any, NamedTuple, Protocol

import apsw
import asyncpg

from ai_whisperer.store.postgresql.lane import Fence
from ai_whisperer.store.postgresql.merging import Part, Wave
from ai_whisperer.store.tables import Row
from tests.simulation.hosts.machines import Machine

_OUTSIDE = Context()
"""What happens on the way, and in the database, happens on none of the machines."""

_APART_SECONDS = 1e-4
"""What is sent on one connection arrives in order."""


class Prepared(NamedTuple):
    """A statement that writes, as its parts; `holds` is whether it proves first that its writer may write."""

    parts: Sequence[Part]
    holds: bool

    def taken_apart(self, values: Sequence[Any]) -> tuple[Fence | None, Wave]:
        fence, values = (Fence(*values[:5]), values[5:]) if self.holds else (None, values)
        wave: Wave = {}
        for part in self.parts:
            columns, values = values[: len(part.columns)], values[len(part.columns) :]
            if columns[0]:
                wave[part] = list(zip(*columns, strict=True))
        return fence, wave


class Served(Protocol):
    """The database, as its connections need it."""

    is_up: bool

    def when_awake(self, what: Callable[[], None]) -> None:
        """Have it done now, or when the database no longer stalls."""
        ...

    def answer(self, connection: Connection, sql: str, values: Sequence[Any]) -> list[Row]: ...

    def write(self, fence: Fence, waves: Sequence[Wave]) -> None: ...

    def hold(self, fence: Fence) -> None: ...

    def snapshot(self) -> apsw.Connection: ...

    def begin(self, connection: Connection) -> None: ...

    def ended(self, connection: Connection) -> None: ...


class Connection:
    """Looks like one of asyncpg. A statement that has reached the database takes effect, whoever waits for it."""

    def __init__(
        self, database: Served, machine: Machine, name: str, *, way: random.Random, slowest_seconds: float
    ) -> None:
        """What is sent is on its way for `slowest_seconds` at most, each way."""
        self._database = database
        self._way = way
        self._slowest = slowest_seconds
        self.machine = machine
        self.name = name
        self._is_closed = False
        self.is_served = False
        self._waiting: asyncio.Future[Any] | None = None
        self._arrives_at = 0.0
        self._told_at = 0.0
        self.snapshot: apsw.Connection | None = None
        self._held: tuple[Fence, list[Wave]] | None = None
        self._in_transaction = False

    async def opened(self) -> Connection:
        def shake_hands() -> None:
            if not self._database.is_up:
                raise ConnectionRefusedError("nobody listens")
            self.is_served = True
            self._database.begin(self)

        try:
            await self._asked(shake_hands, opens=True)
        except BaseException:
            self.terminate()
            raise
        return self

    def is_closed(self) -> bool:
        return self._is_closed

    def terminate(self) -> None:
        """The machine lets go of it. The database hears of it after all that was sent before."""
        if not self._is_closed:
            self._is_closed = True
            self._to_database(self.end)

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109 - as asyncpg has it
        self.terminate()

    def end(self) -> None:
        """The database lets go of it, at once; the machine hears of it later."""
        if self.is_served:
            self.is_served = False
            self._database.ended(self)
        self._to_machine(self._lost)

    async def fetch(self, sql: str, *values: Any) -> list[Row]:
        found: list[Row] = await self._asked(lambda: self._database.answer(self, sql, values))
        return found

    async def fetchrow(self, sql: str, *values: Any) -> Row | None:
        return next(iter(await self.fetch(sql, *values)), None)

    async def fetchval(self, sql: str, *values: Any) -> Any:
        return next(iter(await self.fetchrow(sql, *values) or ()), None)

    execute = fetch

    async def prepare(self, prepared: Prepared) -> Statement:
        return Statement(self, prepared)

    @asynccontextmanager
    async def transaction(self, *, isolation: str = "", readonly: bool = False) -> AsyncIterator[None]:
        del isolation
        await self._asked(lambda: self._begin(readonly=readonly))
        self._in_transaction = True
        try:
            yield
        except BaseException:
            self._in_transaction = False
            if not self._is_closed:
                self._to_database(self._roll_back)
            raise
        self._in_transaction = False
        await self._asked(self._commit)

    async def write(self, prepared: Prepared, values: Sequence[Any]) -> None:
        fence, wave = prepared.taken_apart(values)
        if not self._in_transaction and fence is not None:
            await self._asked(lambda: self._database.write(fence, [wave]))
        else:
            await self._asked(lambda: self._add(fence, wave))

    def _begin(self, *, readonly: bool) -> None:
        self._held = None
        if readonly:
            self.snapshot = self._database.snapshot()

    def _add(self, fence: Fence | None, wave: Wave) -> None:
        if fence is not None:
            self._database.hold(fence)
            self._held = (fence, [wave])
        elif self._held is not None:
            self._held[1].append(wave)

    def _commit(self) -> None:
        held, self._held = self._held, None
        self._roll_back()
        if held is not None:
            self._database.write(*held)

    def _roll_back(self) -> None:
        self._held = None
        snapshot, self.snapshot = self.snapshot, None
        if snapshot is not None:
            snapshot.close()

    async def _asked(self, doing: Callable[[], Any], *, opens: bool = False) -> Any:
        if self._is_closed:
            raise asyncpg.InterfaceError("connection is closed")
        if self._waiting is not None:
            raise asyncpg.InterfaceError("another operation is in progress")
        self._waiting = answer = asyncio.get_running_loop().create_future()
        self._to_database(lambda: self._database.when_awake(lambda: self._do(doing, answer, opens=opens)))
        try:
            return await answer
        finally:
            self._waiting = None

    def _do(self, doing: Callable[[], Any], answer: asyncio.Future[Any], *, opens: bool) -> None:
        if not self.is_served and not opens:
            return  # the database has let go of it, which is told
        try:
            result = doing()
        except (asyncpg.PostgresError, OSError) as error:
            self._to_machine(partial(_settle, answer, failure=error))
        else:
            self._to_machine(partial(_settle, answer, result))

    def _lost(self) -> None:
        self._is_closed = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(asyncpg.ConnectionDoesNotExistError("the connection was lost"))

    def _to_database(self, what: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._arrives_at = max(loop.time() + self._way.random() * self._slowest, self._arrives_at + _APART_SECONDS)
        loop.call_at(self._arrives_at, self.machine.way.pass_on, what, context=_OUTSIDE)

    def _to_machine(self, what: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        self._told_at = max(loop.time() + self._way.random() * self._slowest, self._told_at + _APART_SECONDS)
        loop.call_at(self._told_at, self.machine.way.pass_on, what, context=_OUTSIDE)


def _settle(answer: asyncio.Future[Any], result: Any = None, *, failure: Exception | None = None) -> None:
    if answer.done():
        return
    if failure is None:
        answer.set_result(result)
    else:
        answer.set_exception(failure)


class Statement:
    """One that was prepared."""

    def __init__(self, connection: Connection, prepared: Prepared) -> None:
        self._connection = connection
        self._prepared = prepared

    async def fetchval(self, *values: Any) -> None:
        await self._connection.write(self._prepared, values)
