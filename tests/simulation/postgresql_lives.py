"""Random lives on a real PostgreSQL: time is virtual, and stands still while the database is at work.

So the seed decides what people and models do, when a process dies, and for how long each commit and each read is on its
way; the order in which several statements that are under way at the same moment are answered is the database's.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from asyncpg import Connection
from asyncpg.prepared_stmt import PreparedStatement

from ai_whisperer.errors import StoreInUseError
from ai_whisperer.simulation.loop import RealFiles, SimulationLoop, SimulationStalledError
from ai_whisperer.store.base import Store
from ai_whisperer.store.postgresql import lane, pool
from ai_whisperer.store.postgresql.lane import Lane
from ai_whisperer.store.postgresql.pool import Readers
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.simulation.chaos import Chaos

_SLOWEST_COMMIT_SECONDS = 0.05
_SLOWEST_READ_SECONDS = 0.1
_LONGEST_ANSWER_SECONDS = 60.0
"""So long, in real time, a database may take that others use too."""
_STATEMENTS = ((Connection, ("fetch", "fetchval", "fetchrow", "execute", "prepare", "close")),)


class DatabaseLoop(SimulationLoop):
    """Virtual time, and real sockets: while something waits for a database, no time passes.

    Nor is anything shuffled then: what asyncio does with sockets relies on the order of callbacks.
    """

    def __init__(self, seed: int) -> None:
        self.waiting = 0
        super().__init__(seed, _RealSelector(self))

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)  # type: ignore[attr-defined]

    def idle(self, timeout: float | None) -> None:
        if not (self.waiting and self.has_ready):
            super().idle(timeout)


class _RealSelector(RealFiles):
    """Tells of real sockets; waiting is the passing of virtual time, unless a database is at work."""

    def __init__(self, loop: DatabaseLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = self.real.select(0)
        if not events and not self._loop.has_ready and self._loop.waiting:
            events = self.real.select(_LONGEST_ANSWER_SECONDS)
            if not events:
                raise SimulationStalledError
        self._loop.idle(0 if events else timeout)
        return events


class PostgresqlLives(Chaos):
    """One run of several lives on one database, which each process has for itself."""

    def __init__(self, seed: int, address: str) -> None:
        super().__init__(seed)
        self._address = address
        self._store: PostgresqlStore | None = None
        self._ways = random.Random(f"ways {seed}")

    def run(self) -> None:
        with self._on_their_way():
            super().run()

    def play(self, life: Coroutine[Any, Any, None], *, seed: int) -> None:
        async def live_and_die() -> None:
            try:
                await life
            finally:
                self.crash()

        with asyncio.Runner(loop_factory=lambda: DatabaseLoop(seed)) as runner:
            runner.run(live_and_die())

    async def store(self) -> Store:
        """The connections of a process that has died may be there for a moment: the database hears of it later."""
        until = time.monotonic() + _LONGEST_ANSWER_SECONDS
        while True:
            try:
                self._store = await PostgresqlStore.open(self._address)
            except StoreInUseError:
                if time.monotonic() > until:
                    raise
            else:
                return self._store

    def crash(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.abandon()

    @contextmanager
    def _on_their_way(self) -> Iterator[None]:
        """Let statements stop the time, and commits and reads be on their way before and after they are done."""
        with ExitStack() as stack:
            for owner, names in (*_STATEMENTS, (PreparedStatement, ("fetchval",)), (lane, ("connect",))):
                for name in names:
                    stack.enter_context(patch.object(owner, name, _waited_for(getattr(owner, name))))
            stack.enter_context(patch.object(pool, "connect", lane.connect))  # type: ignore[attr-defined]
            stack.enter_context(patch.object(Lane, "write", self._slow(Lane.write, _SLOWEST_COMMIT_SECONDS)))
            slowest_read = _SLOWEST_READ_SECONDS if self.seed % 2 else 0.0
            stack.enter_context(patch.object(Readers, "read", self._slow(Readers.read, slowest_read)))
            yield

    def _slow(self, doing: Callable[..., Awaitable[Any]], slowest: float) -> Callable[..., Awaitable[Any]]:
        async def slowly(*args: Any) -> Any:
            await asyncio.sleep(self._ways.random() * slowest)
            done = await doing(*args)
            await asyncio.sleep(self._ways.random() * slowest)
            return done

        return slowly


def _waited_for(asking: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def waited_for(*args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, DatabaseLoop):
            return await asking(*args, **kwargs)
        loop.waiting += 1
        try:
            return await asking(*args, **kwargs)
        finally:
            loop.waiting -= 1

    return waited_for
