"""The tables of the simulated database: those of sessions in SQLite, those of nodes in memory.

Each statement is what the real database does by the SQL of the same name (`store/postgresql/node_queries.py` and the
functions in `migrations/`), as one step that nobody sees half of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import asyncpg

from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import Draining
from ai_whisperer.store import tables
from ai_whisperer.store.operations import Verb
from ai_whisperer.store.postgresql.lane import Fence
from ai_whisperer.store.postgresql.merging import Part, Wave
from ai_whisperer.store.postgresql.statements import EPOCH
from ai_whisperer.store.postgresql.writing import State
from ai_whisperer.store.sqlite import queries
from ai_whisperer.store.tables import Row


class HoldError(asyncpg.PostgresError):  # type: ignore[misc]
    """What the function `hold` raises."""

    def __init__(self, state: State, message: str) -> None:
        super().__init__(message)
        self.sqlstate = state.value


class Host:
    """A row of the table `host`. All are equally strong, without tags: nothing goes to one rather than to another."""

    def __init__(self, card: Sequence[Any], *, at: float) -> None:
        self.name, self.address, self.version, self.settings, self.sandbox, self.serves, self.strength, _, self.tags = (
            card
        )
        self.state = NodeState.JOINED
        self.beat = 0
        self.load = (0.0, 0.0)
        self.started_at = at


class Writer:
    """A row of the table `writer`."""

    def __init__(self) -> None:
        self.epoch, self.commits = 1, 0


class Placement:
    """A row of the table `placement`."""

    def __init__(self, writer_id: str | None, epoch: int, *, wanted: bool = False, target: str | None = None) -> None:
        self.writer_id, self.epoch = writer_id, epoch
        self.wanted, self.target, self.cut_off = wanted, target, False


class Written(NamedTuple):
    """Who has written to a session, and who had it then."""

    session_id: str
    writer_id: str
    epoch: int
    is_stale: bool


class NodeTables:
    """Who has joined, who may write, and who has which session."""

    def __init__(self, path: Path) -> None:
        self.rows = apsw.Connection(str(path))
        self.rows.execute("PRAGMA synchronous=OFF")
        self.hosts: dict[str, Host] = {}
        self.departed: set[str] = set()
        self.writers: dict[str, Writer] = {}
        self.placements: dict[str, Placement] = {}
        self.min_version = "0"
        self.epochs: dict[str, dict[int, int]] = {}
        """By session and number, the column `epoch` of the log."""
        self.written: list[Written] = []

    def hold(self, fence: Fence) -> None:
        """Raise if the writer may not write; see `hold` in the migrations."""
        known = self.writers.get(fence.writer)
        if known is None and fence.writer not in self.departed:
            raise HoldError(State.WENT_BACK, str(fence.number - 1))
        if known is None or known.epoch > fence.epoch:
            raise HoldError(State.FENCED, "another has its place")
        if known.commits >= fence.number:
            raise HoldError(State.COMMITTED, f"group {fence.number} is committed")
        if known.commits != fence.number - 1:
            raise HoldError(State.WENT_BACK, str(fence.number - 1 - known.commits))
        lost = [each for each in zip(fence.sessions, fence.epochs, strict=True) if self._is_stale(fence.writer, *each)]
        if lost:
            raise HoldError(State.SESSIONS_LOST, ", ".join(each for each, _ in lost))

    def write(self, fence: Fence, waves: Sequence[Wave]) -> None:
        """Write a group, or nothing of it."""
        self.hold(fence)
        epochs: list[tuple[str, int, int]] = []
        self.rows.execute("BEGIN IMMEDIATE")
        try:
            for wave in waves:
                for part, rows in wave.items():
                    _write(self.rows, part, rows, epochs)
        except apsw.ConstraintError as error:
            self.rows.execute("ROLLBACK")
            raise asyncpg.UniqueViolationError(str(error)) from error
        self.rows.execute("COMMIT")
        if (known := self.writers.get(fence.writer)) is not None:
            known.commits = fence.number
        for session_id, seq, epoch in epochs:
            self.epochs.setdefault(session_id, {})[seq] = epoch
        for session_id, epoch in zip(fence.sessions, fence.epochs, strict=True):
            is_stale = self._is_stale(fence.writer, session_id, epoch)
            self.written.append(Written(session_id, fence.writer, epoch, is_stale))

    def _is_stale(self, writer_id: str, session_id: str, epoch: int) -> bool:
        placed = self.placements.get(session_id)
        return placed is None or (placed.writer_id, placed.epoch) != (writer_id, epoch)

    def join(self, host_id: str, *card: Any, at: float) -> bool:
        if any(each.name == card[0] for each in self.hosts.values()):
            return False
        self.hosts[host_id] = Host(card, at=at)
        self.writers[host_id] = Writer()
        return True

    def beat(self, host_id: str, lag_seconds: float, busy: float) -> int | None:
        host = self.hosts.get(host_id)
        if host is None:
            return None
        host.beat += 1
        host.load = (lag_seconds, busy)
        return host.beat

    def remove(self, host_id: str, beat: int | None, has_ended: bool = True) -> bool:  # noqa: FBT001, FBT002 - as the function of the database
        host = self.hosts.get(host_id)
        if host is None or (beat is not None and host.beat != beat):
            return False
        del self.hosts[host_id]
        del self.writers[host_id]
        self.departed.add(host_id)
        for session_id, placed in self.placements.items():
            if placed.target == host_id:
                placed.target = None
            if placed.writer_id == host_id:
                placed.writer_id = None
                placed.wanted = placed.target is not None or self.has_work(session_id)
                placed.cut_off = not has_ended
        return True

    def claim(self, host_id: str, session_id: str) -> int | None:
        if not self._takes(host_id):
            return None
        placed = self.placements.get(session_id)
        if placed is None:
            self.placements[session_id] = Placement(host_id, self._last_epoch(session_id) + 1)
            return self.placements[session_id].epoch
        other = placed.writer_id or (placed.target if placed.target != host_id else None)
        if other in self.hosts:
            return None
        placed.writer_id, placed.epoch, placed.wanted, placed.target = host_id, placed.epoch + 1, False, None
        return placed.epoch

    def take(self, host_id: str, limit: int) -> list[Row]:
        if not self._takes(host_id):
            return []
        free = [
            (placed.target is None, session_id)
            for session_id, placed in self.placements.items()
            if placed.writer_id is None and placed.wanted and placed.target in (None, host_id)
        ]
        taken = [session_id for _, session_id in sorted(free)[:limit]]
        for placed in map(self.placements.__getitem__, taken):
            placed.writer_id, placed.epoch, placed.wanted, placed.target = host_id, placed.epoch + 1, False, None
        return [(each, self.placements[each].epoch) for each in taken]

    def release(self, host_id: str, session_id: str, epoch: int) -> None:
        placed = self.placements.get(session_id)
        if placed is not None and (placed.writer_id, placed.epoch) == (host_id, epoch):
            placed.writer_id, placed.cut_off = None, False
            placed.wanted = placed.target is not None or self.has_work(session_id)

    def forget(self, session_id: str) -> None:
        placed = self.placements.get(session_id)
        if placed is not None and placed.writer_id is None and not placed.wanted:
            there = self._found("SELECT 1 FROM session WHERE id=?", session_id)
            if not there and not self._last_seq(session_id):
                del self.placements[session_id]

    def want(self, session_ids: Iterable[str]) -> None:
        for each in session_ids:
            if each not in self.placements and self.has_work(each):
                self.placements[each] = Placement(None, self._last_epoch(each), wanted=True)

    def move(self, session_id: str, name: str) -> None:
        host_id = next((key for key, each in self.hosts.items() if each.name == name and self._takes(key)), None)
        if host_id is None or not self.hosts[host_id].serves:
            return
        placed = self.placements.get(session_id)
        if placed is None:
            last = self._last_epoch(session_id)
            self.placements[session_id] = Placement(None, last, wanted=True, target=host_id)
        else:
            placed.target = None if placed.writer_id == host_id else host_id
            placed.wanted = placed.writer_id is None

    def drain(self, name: str, forced: bool) -> str | None:  # noqa: FBT001 - as the function of the database
        host_id = next((key for key, each in self.hosts.items() if each.name == name and each.serves), None)
        if host_id is None:
            return None
        takers = [key for key, each in self.hosts.items() if each.serves and self._takes(key)]
        if takers == [host_id] and not forced:
            return Draining.IS_LAST
        self.hosts[host_id].state = NodeState.DRAINING
        for placed in self.placements.values():
            placed.target = None if placed.target == host_id else placed.target
        return Draining.BEGUN

    def chores(self, host_id: str) -> Row:
        wanted = sum(each.writer_id is None and each.wanted for each in self.placements.values())
        moving = [key for key, each in self.placements.items() if each.writer_id == host_id and each.target is not None]
        limits = self._found(queries.LIMITS, "")
        return wanted, moving, limits[0][0] if limits else ""

    def mine(self, host_id: str) -> list[Row]:
        return [(key, each.epoch) for key, each in self.placements.items() if each.writer_id == host_id]

    def counts(self) -> list[Row]:
        return [(host_id, len(held)) for host_id in self.hosts if (held := self.mine(host_id))]

    def has_work(self, session_id: str) -> bool:
        with_work = {each for (each,) in self._found(queries.SESSIONS_WITH_WORK)}
        return session_id in with_work and bool(self._found("SELECT 1 FROM session WHERE id=?", session_id))

    def _takes(self, host_id: str) -> bool:
        return host_id in self.hosts and self.hosts[host_id].state is NodeState.JOINED

    def _last_epoch(self, session_id: str) -> int:
        return self.epochs.get(session_id, {}).get(self._last_seq(session_id), 0)

    def _last_seq(self, session_id: str) -> int:
        ((seq,),) = self._found(queries.LAST_SEQ, session_id)
        return int(seq)

    def _found(self, sql: str, *values: Any) -> list[Row]:
        return list(self.rows.execute(sql, values))


def _write(rows: apsw.Connection, part: Part, values: Sequence[Row], epochs: list[tuple[str, int, int]]) -> None:
    if part.table is tables.NOTIFICATION and EPOCH in part.columns:
        place, seq = part.columns.index("session_id"), part.columns.index("seq")
        epochs += [(row[place], row[seq], row[-1]) for row in values]
        part, values = part._replace(columns=part.columns[:-1]), [row[:-1] for row in values]
    rows.executemany(_sql_of(part), values)


@cache
def _sql_of(part: Part) -> str:
    table, key = f'"{part.table.name}"', part.table.key
    match part.verb:
        case Verb.INSERT | Verb.PUT | Verb.COUNT:
            names = ", ".join(f'"{name}"' for name in part.columns)
            added = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(part.columns))})"  # noqa: S608
            return added + _on_conflict(part)
        case Verb.UPDATE:
            changes = ", ".join(f'"{name}"=?' for name in part.columns[: -len(key)])
            return f"UPDATE {table} SET {changes} WHERE {_same(key)}"  # noqa: S608
        case Verb.DELETE:
            return f"DELETE FROM {table} WHERE {_same(key)}"  # noqa: S608
        case Verb.DELETE_SOME | Verb.DELETE_BELOW:
            which = _same(part.columns[:-1])
            if part.verb is Verb.DELETE_BELOW:
                which = which[: -len("=?")] + "<?"
            row = ", ".join(f'"{name}"' for name in key)
            return f"DELETE FROM {table} WHERE ({row}) IN (SELECT {row} FROM {table} WHERE {which} LIMIT ?)"  # noqa: S608


def _same(names: Iterable[str]) -> str:
    return " AND ".join(f'"{name}"=?' for name in names)


def _on_conflict(part: Part) -> str:
    if part.verb is Verb.INSERT:
        return ""
    if part.counting is None:
        changes = [f'"{name}"=excluded."{name}"' for name in part.columns if name not in part.table.key]
    else:
        summed, least, most = part.counting
        changes = [
            *(f'"{name}"="{name}"+excluded."{name}"' for name in summed),
            *(f'"{name}"=min("{name}", excluded."{name}")' for name in least),
            *(f'"{name}"=max("{name}", excluded."{name}")' for name in most),
        ]
    key = ", ".join(f'"{name}"' for name in part.table.key)
    return f" ON CONFLICT ({key}) DO " + (f"UPDATE SET {', '.join(changes)}" if changes else "NOTHING")
