"""A disk for simulations: commits and reads take virtual time, and a crash takes what was not yet written."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from functools import cache
from inspect import getmembers, iscoroutinefunction
from pathlib import Path
from shutil import copytree
from typing import Any, Protocol

import apsw

from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.committers import Before, Committed
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.opening import open_database

_MEMORY = "/dev/shm"  # noqa: S108 - a folder with a random name is made in it
_ROOM_BYTES = 1 << 30
_SLOW_READS = 0.5
"""So many of the reads take time before they read, and so many after."""


class Pace(Protocol):
    """How long commits take. It is told of each, and the process may die in its hands."""

    def seconds_before(self) -> float:
        """How long the next commit takes until it is on disk."""

    def committing(self) -> None:
        """The next commit is about to be on disk."""

    def committed(self) -> None:
        """It is there, and nobody was told."""

    def seconds_after(self) -> float:
        """How long it takes until they are told."""


class RandomPace:
    """Commits take a random time, up to the slowest, and so it takes until they are told."""

    def __init__(self, random: random.Random, slowest: float) -> None:
        self._random = random
        self._slowest = slowest

    def seconds_before(self) -> float:
        return self._random.random() * self._slowest

    def committing(self) -> None:
        """Nothing goes wrong here."""

    def committed(self) -> None:
        """Nor here."""

    def seconds_after(self) -> float:
        return self._random.random() * self._slowest


class SimulatedDisk:
    """A database that outlives the stores that are opened on it, as a file outlives processes."""

    def __init__(
        self,
        seed: int = 0,
        *,
        slowest_commit_seconds: float = 0.01,
        slowest_read_seconds: float = 0.0,
        pace: Pace | None = None,
        within: Path | None = None,
    ) -> None:
        """`pace` decides about commits in place of the seed. `within` is the folder where it is, else one in memory."""
        self._random = random.Random(seed)  # noqa: S311 - chance that can be repeated is the purpose
        self._pace = pace or RandomPace(self._random, slowest_commit_seconds)
        self._slowest_read = slowest_read_seconds
        self._folder = tempfile.TemporaryDirectory(prefix="whisperer-disk-", dir=within or _memory())
        Path(self._folder.name, DATABASE_NAME).write_bytes(empty_database())
        self._committer: _SlowCommitter | None = None
        self._store: SqliteStore | None = None

    @property
    def folder(self) -> Path:
        """Where it is on the real disk. Files that are written there beside the database survive crashes too."""
        return Path(self._folder.name)

    @property
    def store(self) -> SqliteStore | None:
        """The store of the process that runs on it; None if none does."""
        return self._store

    def open(self) -> SqliteStore:
        """A store on this disk, for a new process."""
        self._committer = _SlowCommitter(self._pace)
        kind = SqliteStore if not self._slowest_read else _SlowStore
        self._store = kind.open(self._folder.name, committer=self._committer, synchronous="OFF")
        if isinstance(self._store, _SlowStore):
            self._store.be_slow(self._random, self._slowest_read)
        return self._store

    def crash(self) -> None:
        """The process dies now: an open transaction is gone, nobody is told of a commit any more."""
        if self._committer is not None and self._store is not None:
            self._committer.crashed = True
            self._store.abandon()
            self._store = None

    def keep(self, folder: Path, session: SessionRecord) -> None:
        """Copy what is there to a data folder in which a server finds the session. Not within an event loop."""
        copytree(self.folder, folder, dirs_exist_ok=True)

        async def list_it() -> None:
            store = SqliteStore.open(folder)
            try:
                unit = Unit()
                unit.insert_session(session)
                await store.submit(unit)
            finally:
                await store.close()

        asyncio.run(list_it())

    def close(self) -> None:
        self._folder.cleanup()


@cache
def _memory() -> str | None:
    """A folder in memory, where there is one with room: what is only simulated need not wait for a real disk."""
    try:
        has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES
    except OSError:
        return None
    return _MEMORY if has_room else None


@cache
def empty_database() -> bytes:
    """A database in which nothing is yet. To make one takes as long as a short simulation, so it is made once."""
    with tempfile.TemporaryDirectory(prefix="whisperer-disk-") as folder:
        path = Path(folder, DATABASE_NAME)
        open_database(path).close()
        return path.read_bytes()


class _SlowStore(SqliteStore):
    """Reads after a while, and tells after another: what is committed between the two is missed, as over a network."""

    _slowest = 0.0

    def be_slow(self, random: random.Random, slowest: float) -> None:
        self._random = random
        self._slowest = slowest

    async def pause(self) -> None:
        if self._slowest and self._random.random() < _SLOW_READS:
            await asyncio.sleep(self._random.random() * self._slowest)


def _slow(read: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def slowly(self: _SlowStore, *args: Any, **kwargs: Any) -> Any:
        await self.pause()
        found = await read(self, *args, **kwargs)
        await self.pause()
        return found

    return slowly


_DEEDS = {"claim", "release", "flushed", "delete_session", "erase", "import_session", "close"}
for _name, _read in getmembers(SqliteStore):
    if iscoroutinefunction(_read) and not _name.startswith("_") and _name not in _DEEDS:
        setattr(_SlowStore, _name, _slow(_read))


class _SlowCommitter:
    """Commits after a while, and tells after another: a crash may fall between the two."""

    rows_in_group = 2_000
    warning: str | None = None

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.crashed = False

    def commit(self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None) -> None:
        del units
        if before is not None:
            before()
        self._later(self._pace.seconds_before(), lambda: self._commit(connection, done))

    def empty_log_soon(self) -> None:
        """SQLite does that itself."""

    def close(self) -> None:
        """There is nothing to let go of."""

    def _commit(self, connection: apsw.Connection, done: Committed) -> None:
        self._pace.committing()
        if self.crashed:
            return
        connection.execute("COMMIT")
        self._pace.committed()
        if not self.crashed:
            self._later(self._pace.seconds_after(), lambda: done(None))

    def _later(self, seconds: float, callback: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(seconds, lambda: None if self.crashed else callback())
