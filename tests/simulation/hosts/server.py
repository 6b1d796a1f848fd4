"""The simulated database: it answers the statements of nodes, stalls, ends and starts again."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw

from ai_whisperer.simulation.disk import empty_database
from ai_whisperer.simulation.loop import EPOCH
from ai_whisperer.store.postgresql import lane, node_queries, queries, retention_queries
from ai_whisperer.store.postgresql.lane import Fence
from ai_whisperer.store.postgresql.merging import Wave
from ai_whisperer.store.sqlite import queries as sqlite_queries
from ai_whisperer.store.sqlite import retention_queries as sqlite_retention_queries
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.tables import Row
from tests.simulation.hosts.machines import Machine, this_machine
from tests.simulation.hosts.tables import NodeTables
from tests.simulation.hosts.wire import Connection

Answer = Callable[["Database", Connection, Sequence[Any]], list[Row]]


_SLOWEST_SECONDS = (0.002, 0.01, 0.03, 0.03, 0.15)
"""Some connections are slow: of two that a node makes again either may be the first that is answered."""


class Database:
    """One database, on which several machines have connections."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"database {seed}")
        self._folder = tempfile.TemporaryDirectory(prefix="whisperer-hosts-")
        self._path = Path(self._folder.name, DATABASE_NAME)
        self._path.write_bytes(empty_database())
        self.tables = NodeTables(self._path)
        self.is_up = True
        self._incarnation = 1
        self._stalled: list[Callable[[], None]] | None = None
        self._connections: list[Connection] = []
        self._locks: dict[str, Connection] = {}
        self.machines: dict[str, Machine] = {}
        self.removed_without_cause: list[str] = []

    async def connect(
        self,
        address: str,  # noqa: ARG002 - there is one database
        *,
        name: str,
        writes: bool = False,  # noqa: ARG002
        seconds: float = 5.0,
    ) -> Connection:
        """Takes the place of `connect` of the store."""
        machine = this_machine()
        assert machine is not None, "only machines have connections"
        slowest = self._random.choice(_SLOWEST_SECONDS)
        async with asyncio.timeout(seconds):
            return await Connection(self, machine, name, way=self._random, slowest_seconds=slowest).opened()

    def close(self) -> None:
        self.tables.rows.close()
        self._folder.cleanup()

    def now(self) -> float:
        return EPOCH + asyncio.get_running_loop().time()

    def stall(self) -> None:
        """Let nothing be answered."""
        if self._stalled is None:
            self._stalled = []

    def go_on(self) -> None:
        waiting, self._stalled = self._stalled or [], None
        for what in waiting:
            what()

    def stop(self) -> None:
        """Let all connections be gone, and take none."""
        self.is_up = False
        for connection in list(self._connections):
            connection.end()

    def start(self) -> None:
        if not self.is_up:
            self.is_up = True
            self._incarnation += 1

    def cut(self, machine: Machine, *, by_the_machine: bool = False) -> None:
        """Let the connections of a machine be gone; if it has ended, the database hears of it as fast as it can."""
        for connection in self._of(machine):
            if by_the_machine or self._random.random() < 0.5:  # or else the database hears of it first
                connection.terminate()
            else:
                connection.end()

    def _of(self, machine: Machine) -> list[Connection]:
        return [connection for connection in self._connections if connection.machine is machine]

    def when_awake(self, what: Callable[[], None]) -> None:
        if self._stalled is None:
            what()
        else:
            self._stalled.append(what)

    def begin(self, connection: Connection) -> None:
        self._connections.append(connection)

    def ended(self, connection: Connection) -> None:
        self._connections.remove(connection)
        self._locks = {key: holder for key, holder in self._locks.items() if holder is not connection}
        if connection.snapshot is not None:
            connection.snapshot.close()

    def snapshot(self) -> apsw.Connection:
        made = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
        made.execute("BEGIN")
        return made

    def hold(self, fence: Fence) -> None:
        self.tables.hold(fence)

    def write(self, fence: Fence, waves: Sequence[Wave]) -> None:
        self.tables.write(fence, waves)
        machine = self.machines[fence.writer]
        if machine.is_cut_at_commit:
            machine.is_cut_at_commit = False
            for connection in self._of(machine):
                connection.end()

    def answer(self, connection: Connection, sql: str, values: Sequence[Any]) -> list[Row]:
        if (known := _ANSWERS.get(sql)) is not None:
            return known(self, connection, values)
        return list((connection.snapshot or self.tables.rows).execute(_SQLITE[sql], values))

    def end_connections(self, connection: Connection, name: str) -> list[Row]:
        """End those whose names begin so: nothing that they have not done yet is done after this."""
        for other in list(self._connections):
            if other is not connection and other.name.startswith(name):
                other.end()
        return []

    def lock(self, connection: Connection, host_id: str) -> list[Row]:
        return [(self._locks.setdefault(host_id, connection) is connection,)]

    def nodes(self) -> list[Row]:
        return [
            (
                *(host_id, each.name, each.address, each.version, each.settings, each.sandbox, each.strength),
                *(
                    each.serves,
                    each.state.value,
                    each.beat,
                    each.started_at,
                    host_id in self._locks,
                    *each.load,
                    each.tags,
                ),
            )
            for host_id, each in sorted(self.tables.hosts.items(), key=lambda item: item[1].name)
        ]

    def incarnation(self) -> list[Row]:
        return [(str(self._incarnation), self.now())]

    def join(self, connection: Connection, values: Sequence[Any]) -> list[Row]:
        if not self.tables.join(*values, at=self.now()):
            return []
        self.machines[values[0]] = connection.machine
        return [(values[0],)]

    def remove(self, connection: Connection, values: Sequence[Any]) -> list[Row]:
        is_removed = self.tables.remove(*values)
        if is_removed:
            machine = self.machines[values[0]]
            if connection.machine is not machine and not (machine.is_suspect or machine.is_over):
                self.removed_without_cause.append(machine.name)
            machine.is_removed = True
        return [(is_removed,)]

    def raise_min_version(self, version: str) -> list[Row]:
        self.tables.min_version = version
        return []

    def holder(self, session_id: str) -> list[Row]:
        placed = self.tables.placements.get(session_id)
        host = None if placed is None else self.tables.hosts.get(placed.writer_id or "")
        if placed is None or host is None:
            return []
        return [(placed.writer_id, placed.epoch, host.name, host.address, placed.writer_id in self._locks)]

    def placed(self, session_id: str) -> list[Row]:
        placed = self.tables.placements.get(session_id)
        if placed is None:
            return []
        host = self.tables.hosts.get(placed.writer_id or "")
        return [(host.name if host else "", host.address if host else "", placed.epoch)]

    def still_mine(self, host_id: str, session_id: str, epoch: int) -> list[Row]:
        placed = self.tables.placements.get(session_id)
        return [(1,)] if placed is not None and (placed.writer_id, placed.epoch) == (host_id, epoch) else []

    def was_cut_off(self, session_id: str) -> list[Row]:
        placed = self.tables.placements.get(session_id)
        return [(1,)] if placed is not None and placed.cut_off else []


def _one(value: object) -> list[Row]:
    return [] if value is None else [(value,)]


def _without_rows(change: Callable[..., None]) -> Answer:
    def answer(database: Database, _: Connection, values: Sequence[Any]) -> list[Row]:
        change(database.tables, *values)
        return []

    return answer


_ANSWERS: dict[str, Answer] = {
    "SELECT pg_try_advisory_lock_shared($1)": lambda *_: [(True,)],
    "SELECT current_setting('synchronous_commit')": lambda *_: [("on",)],
    lane._END_FORMER: lambda db, by, values: db.end_connections(by, values[0]),
    node_queries.END_CONNECTIONS: lambda db, by, values: db.end_connections(by, values[0]),
    node_queries.LOCK: lambda db, by, values: db.lock(by, values[0]),
    node_queries.BEAT: lambda db, _, values: _one(db.tables.beat(*values)),
    node_queries.NODES: lambda db, *_: db.nodes(),
    node_queries.INCARNATION: lambda db, *_: db.incarnation(),
    node_queries.CHORES: lambda db, _, values: [db.tables.chores(*values)],
    node_queries.CLUSTER: lambda db, *_: [("simulated", db.tables.min_version)],
    node_queries.RAY: lambda *_: [("", 0, 0.0, 0, 0, 100, "")],
    node_queries.HAS_DEPARTED: lambda db, _, values: [(values[0] in db.tables.departed,)],
    node_queries.IS_FOR_STRONGER: lambda *_: [],
    node_queries.FORGET_FILES: lambda *_: [],
    node_queries.DELETED_ELSEWHERE: lambda *_: [],
    node_queries.SHOWN_TO_NODES: lambda *_: [("secret",)],
    node_queries.RAISE_MIN_VERSION: lambda db, _, values: db.raise_min_version(*values),
    node_queries.JOIN: lambda db, by, values: db.join(by, values),
    node_queries.REMOVE: lambda db, by, values: db.remove(by, values),
    node_queries.LEAVE: lambda db, by, values: db.remove(by, (*values, None)),
    node_queries.DRAIN: lambda db, _, values: [(db.tables.drain(*values),)],
    node_queries.CLAIM: lambda db, _, values: _one(db.tables.claim(*values)),
    node_queries.HOLDER: lambda db, _, values: db.holder(*values),
    node_queries.TAKE: lambda db, _, values: db.tables.take(*values),
    node_queries.MINE: lambda db, _, values: db.tables.mine(*values),
    node_queries.WANT: _without_rows(NodeTables.want),
    node_queries.RELEASE: _without_rows(NodeTables.release),
    node_queries.FORGET: _without_rows(NodeTables.forget),
    node_queries.WAS_CUT_OFF: lambda db, _, values: db.was_cut_off(*values),
    node_queries.STILL_MINE: lambda db, _, values: db.still_mine(*values),
    node_queries.IS_DELETED: lambda db, _, values: list(
        db.tables.rows.execute("SELECT 1 FROM deletion WHERE session_id=?", values)
    ),
    node_queries.MOVE: _without_rows(NodeTables.move),
    node_queries.PLACED: lambda db, _, values: db.placed(*values),
    node_queries.NEEDS: lambda *_: [("[]",)],
    node_queries.NEEDS_OF_WAITING: lambda *_: [],
    node_queries.SESSION_COUNTS: lambda db, *_: db.tables.counts(),
}


def _pairs(ours: ModuleType, theirs: ModuleType) -> Iterator[tuple[str, str]]:
    """The queries of the same name in both dialects, which take the same values in the same order."""
    for name, sql in vars(ours).items():
        other = getattr(theirs, name, None)
        if isinstance(sql, str) and isinstance(other, str) and name.isupper():
            yield sql, other
        elif isinstance(sql, dict) and isinstance(other, dict) and name.isupper():
            yield from ((sql[key], other[key]) for key in sql)


_SQLITE = {
    **dict(_pairs(queries, sqlite_queries)),
    **dict(_pairs(retention_queries, sqlite_retention_queries)),
}
