"""A disk for simulations: commits take virtual time, and a crash takes what was not yet written."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable

import apsw

from ai_whisperer.store.sqlite import SqliteStore


class SimulatedDisk:
    """A database that outlives the stores that are opened on it, as a file outlives processes."""

    def __init__(self, seed: int = 0, *, slowest_commit_seconds: float = 0.01) -> None:
        self._random = random.Random(seed)  # noqa: S311 - chance that can be repeated is the purpose
        self._slowest = slowest_commit_seconds
        self._name = f"disk-{uuid.uuid4().hex}"
        self._anchor = SqliteStore.in_memory(self._name)
        self._committer: _SlowCommitter | None = None

    def open(self) -> SqliteStore:
        """A store on this disk, for a new process."""
        self._committer = _SlowCommitter(self._random, self._slowest)
        return SqliteStore.in_memory(self._name, committer=self._committer)

    def crash(self) -> None:
        """The process dies now: an open transaction is gone, nobody is told of a commit any more."""
        if self._committer is not None:
            self._committer.crash()

    async def close(self) -> None:
        await self._anchor.close()


class _SlowCommitter:
    """Commits after a while, and tells after another: a crash may fall between the two."""

    def __init__(self, random: random.Random, slowest: float) -> None:
        self._random = random
        self._slowest = slowest
        self._connection: apsw.Connection | None = None
        self._crashed = False

    def commit(self, connection: apsw.Connection, done: Callable[[BaseException | None], None]) -> None:
        self._connection = connection
        self._later(lambda: self._commit(connection, done))

    def crash(self) -> None:
        self._crashed = True
        if self._connection is not None:
            self._connection.close(force=True)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _commit(self, connection: apsw.Connection, done: Callable[[BaseException | None], None]) -> None:
        if not self._crashed:
            connection.execute("COMMIT")
            self._later(lambda: None if self._crashed else done(None))

    def _later(self, callback: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(self._random.random() * self._slowest, callback)
