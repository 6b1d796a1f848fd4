"""The simulated database does with nodes and claims what PostgreSQL does, whatever comes in which order.

Both are given the same statements, drawn from a seed, and after each both must have answered the same and hold the
same: what the simulation of two nodes proves is then true of the real one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

import asyncpg

from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.store import tables
from ai_whisperer.store.base import Change, Unit
from ai_whisperer.store.operations import INSERT_NOTIFICATION
from ai_whisperer.store.postgresql import node_queries as queries
from ai_whisperer.store.postgresql.connecting import state_of
from ai_whisperer.store.postgresql.lane import Fence, Lane
from ai_whisperer.store.postgresql.merging import Wave, merged
from ai_whisperer.store.postgresql.statements import with_epoch
from tests.effort import some
from tests.simulation.hosts.server import _ANSWERS, Database
from tests.simulation.hosts.tables import NodeTables

SESSIONS = ("s0", "s1", "s2")
NAMES = ("a", "b", "c")
STEPS = 120
UNORDERED = (queries.TAKE, queries.MINE, queries.SESSION_COUNTS)
NOT_DRAWN = {
    queries.END_CONNECTIONS: "about connections",
    queries.LOCK: "about connections",
    queries.INCARNATION: "about time",
    queries.CLUSTER: "one row that nothing here changes",
    queries.RAY: "one row that nothing here changes",
    queries.SHOWN_TO_NODES: "one row that nothing here changes",
    queries.RAISE_MIN_VERSION: "one row that nothing here changes",
    queries.IS_FOR_STRONGER: "all simulated nodes are equally strong",
    queries.NEEDS: "no simulated session needs tags",
    queries.NEEDS_OF_WAITING: "no simulated session needs tags",
    queries.FORGET_FILES: "simulated nodes share their folder",
    queries.DELETED_ELSEWHERE: "simulated nodes share their folder",
}
_TABLES = {
    "host": "SELECT id, name, serves, state, beat FROM host ORDER BY id",
    "writer": "SELECT id, epoch, commits FROM writer ORDER BY id",
    "departed": "SELECT id FROM departed ORDER BY id",
    "placement": "SELECT session_id, writer_id, epoch, wanted, target, cut_off FROM placement ORDER BY session_id",
}


class Asked(NamedTuple):
    """A statement and its values."""

    sql: str
    values: tuple[Any, ...]


class Written(NamedTuple):
    """A group that a node writes."""

    fence: Fence
    changes: list[Change]


class Story:
    """What comes next: mostly what nodes do, and sometimes what they would never do."""

    def __init__(self, seed: int, known: NodeTables) -> None:
        self._random = random.Random(f"story {seed}")
        self._known = known
        self._joined = 0
        self._rows = 0

    def __iter__(self) -> Iterator[Asked | Written]:
        for _ in range(STEPS):
            yield self._random.choice(_KINDS)(self)

    def _any_host(self) -> str:
        known = [*self._known.hosts, *self._known.hosts, *self._known.departed, "stranger"]
        return self._random.choice(sorted(known))

    def _any_session(self) -> str:
        return self._random.choice(SESSIONS)

    def _epoch_of(self, session_id: str) -> int:
        placed = self._known.placements.get(session_id)
        return (0 if placed is None else placed.epoch) - self._random.choice((0, 0, 0, 1))

    def join(self) -> Asked:
        self._joined += 1
        name, serves = self._random.choice(NAMES), self._random.random() < 0.8
        card = (name, f"http://{name}", "0.1.0", "same", "none", serves, 0, "", "[]")
        return Asked(queries.JOIN, (f"h{self._joined:02}", *card))

    def beat(self) -> Asked:
        return Asked(queries.BEAT, (self._any_host(), 0.5, 0.25))

    def remove(self) -> Asked:
        host = self._any_host()
        known = self._known.hosts.get(host)
        beat = self._random.choice((None, 0 if known is None else known.beat, 99))
        return Asked(queries.REMOVE, (host, beat, self._random.random() < 0.5))

    def leave(self) -> Asked:
        return Asked(queries.LEAVE, (self._any_host(),))

    def drain(self) -> Asked:
        return Asked(queries.DRAIN, (self._random.choice((*NAMES, "x")), self._random.random() < 0.5))

    def claim(self) -> Asked:
        return Asked(queries.CLAIM, (self._any_host(), self._any_session()))

    def take(self) -> Asked:
        return Asked(queries.TAKE, (self._any_host(), self._random.choice((1, 2, 9))))

    def release(self) -> Asked:
        session = self._any_session()
        placed = self._known.placements.get(session)
        holder = placed.writer_id if placed is not None and self._random.random() < 0.8 else None
        return Asked(queries.RELEASE, (holder or self._any_host(), session, self._epoch_of(session)))

    def forget(self) -> Asked:
        return Asked(queries.FORGET, (self._any_session(),))

    def want(self) -> Asked:
        return Asked(queries.WANT, (list(SESSIONS),))

    def move(self) -> Asked:
        return Asked(queries.MOVE, (self._any_session(), self._random.choice((*NAMES, "x"))))

    def look_at_session(self) -> Asked:
        look = self._random.choice((queries.PLACED, queries.HOLDER, queries.WAS_CUT_OFF, queries.IS_DELETED))
        return Asked(look, (self._any_session(),))

    def look_at_host(self) -> Asked:
        look = self._random.choice((queries.MINE, queries.CHORES, queries.HAS_DEPARTED))
        return Asked(look, (self._any_host(),))

    def look_at_all(self) -> Asked:
        return Asked(self._random.choice((queries.NODES, queries.SESSION_COUNTS)), ())

    def still_mine(self) -> Asked:
        session = self._any_session()
        return Asked(queries.STILL_MINE, (self._any_host(), session, self._epoch_of(session)))

    def write(self) -> Written:
        session = self._any_session()
        placed = self._known.placements.get(session)
        writer = (placed.writer_id if placed is not None and self._random.random() < 0.8 else None) or self._any_host()
        known = self._known.writers.get(writer)
        number = (0 if known is None else known.commits) + self._random.choice((1, 1, 1, 1, 0, 2))
        epoch = self._epoch_of(session)
        fence = Fence(writer, self._random.choice((1, 1, 1, 0)), number, [session], [epoch])
        return Written(fence, self._changes(session))

    def _changes(self, session_id: str) -> list[Change]:
        unit, rows = Unit(), self._known.rows
        is_there = rows.execute("SELECT 1 FROM session WHERE id=?", (session_id,)).fetchall()
        match self._random.choice(("make", "work", "work", "rest", "tell", "delete", "forget")):
            case "make" if not is_there:
                unit.insert_session(SessionRecord(id=session_id, title="", owner="local", created_at=1.0))
            case "work":
                unit.put_timer(
                    TimerRecord(session_id=session_id, id="t", agent_id="ann", kind=TimerKind.WAKE, due_at=9.0)
                )
            case "delete":
                unit.begin_deletion(session_id)
                unit.delete_some(session_id, tables.NOTIFICATION, limit=99)
            case "forget":
                unit.end_deletion(session_id)
            case "tell":
                self._rows += 1
                unit.changes.append((INSERT_NOTIFICATION, (session_id, self._rows, 1.0, 1, b"[]")))
            case _:
                unit.delete_timer(session_id, "t")
        return unit.changes


_KINDS = (
    *(Story.join, Story.join, Story.beat, Story.remove, Story.leave, Story.drain, Story.claim, Story.claim),
    *(Story.take, Story.take, Story.release, Story.forget, Story.want, Story.move, Story.look_at_session),
    *(Story.look_at_host, Story.look_at_all, Story.still_mine, Story.write, Story.write, Story.write),
)


def stamped(wave: Wave, epoch: int) -> Wave:
    return {
        (written := with_epoch(part)): rows if written is part else [(*row, epoch) for row in rows]
        for part, rows in wave.items()
    }


def comparable(sql: str, rows: Sequence[Any]) -> list[Any]:
    found = [tuple(row) for row in rows]
    if sql == queries.NODES:  # not when they began
        found = [(*row[:10], *row[11:]) for row in found]
    if sql == queries.CHORES:
        found = [(wanted, sorted(moving), limits) for wanted, moving, limits in found]
    return sorted(found) if sql in UNORDERED else found


class Real:
    """PostgreSQL."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def answer(self, asked: Asked) -> list[Any]:
        connection = await self._lane.connected()
        return comparable(asked.sql, await connection.fetch(asked.sql, *asked.values))

    async def write(self, fence: Fence, waves: list[Wave]) -> str:
        try:
            await self._lane.write(fence, waves)
        except asyncpg.PostgresError as error:
            return state_of(error)
        return ""

    async def holds(self) -> dict[str, list[Any]]:
        connection = await self._lane.connected()
        return {name: [tuple(row) for row in await connection.fetch(sql)] for name, sql in _TABLES.items()}


class Simulated:
    """What the simulation of nodes takes for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._machine: Any = SimpleNamespace(name="m", is_suspect=True, is_over=False, is_cut_at_commit=False)

    def answer(self, asked: Asked) -> list[Any]:
        by: Any = SimpleNamespace(machine=self._machine)
        return comparable(asked.sql, _ANSWERS[asked.sql](self._database, by, asked.values))

    def write(self, fence: Fence, waves: list[Wave]) -> str:
        try:
            self._database.tables.write(fence, waves)
        except asyncpg.PostgresError as error:
            return state_of(error)
        return ""

    def holds(self) -> dict[str, list[Any]]:
        known = self._database.tables
        return {
            "host": [(key, each.name, each.serves, each.state, each.beat) for key, each in sorted(known.hosts.items())],
            "writer": [(key, each.epoch, each.commits) for key, each in sorted(known.writers.items())],
            "departed": [(each,) for each in sorted(known.departed)],
            "placement": [
                (key, each.writer_id, each.epoch, each.wanted, each.target, each.cut_off)
                for key, each in sorted(known.placements.items())
            ],
        }


async def told_apart(address: str, seed: int) -> str | None:
    """Play a story on both; returns the first step after which they differ."""
    lane, database = Lane(address, name="compared", shares=True), Database(seed)
    real, simulated = Real(lane), Simulated(database)
    try:
        connection = await lane.connected()
        every = "host, writer, departed, placement, session, notification, timer, deletion, files_at"
        await connection.execute(f"TRUNCATE {every}")
        for number, step in enumerate(Story(seed, database.tables)):
            if isinstance(step, Asked):
                pair = await real.answer(step), simulated.answer(step)
            else:
                waves = [stamped(each, step.fence.epochs[0]) for each in merged(step.changes)]
                pair_of_states = await real.write(step.fence, waves), simulated.write(step.fence, waves)
                pair = [pair_of_states[0]], [pair_of_states[1]]
            held = await real.holds(), simulated.holds()
            if pair[0] != pair[1] or held[0] != held[1]:
                return f"seed {seed}, step {number}: {step}\nanswers {pair}\nheld {held[0]}\nsimulated {held[1]}"
        return None
    finally:
        await lane.close()
        database.close()


def test_the_simulated_database_does_what_postgresql_does_with_nodes(database: str) -> None:
    for seed in range(some(12)):
        apart = asyncio.run(told_apart(database, seed))
        assert apart is None, apart


def test_the_stories_have_all_statements_that_the_simulation_answers() -> None:
    drawn = {
        *(queries.JOIN, queries.BEAT, queries.REMOVE, queries.LEAVE, queries.DRAIN, queries.CLAIM, queries.TAKE),
        *(queries.RELEASE, queries.FORGET, queries.WANT, queries.MOVE, queries.PLACED, queries.HOLDER),
        *(queries.WAS_CUT_OFF, queries.IS_DELETED, queries.MINE, queries.CHORES, queries.HAS_DEPARTED),
        *(queries.NODES, queries.SESSION_COUNTS, queries.STILL_MINE),
    }
    of_nodes = {each for each in vars(queries).values() if isinstance(each, str)}
    assert {sql for sql in _ANSWERS if sql in of_nodes} == drawn | NOT_DRAWN.keys()


@pytest.mark.parametrize("name", ["claim", "release", "remove", "hold", "forget", "drain"])
def test_a_simulated_statement_that_does_nothing_is_found(
    database: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = {"claim": None, "remove": False, "drain": None}.get(name)
    monkeypatch.setattr(NodeTables, name, lambda *_, **__: result)
    if name in ("release", "forget"):
        monkeypatch.setitem(_ANSWERS, getattr(queries, name.upper()), lambda *_: [])
    assert any(asyncio.run(told_apart(database, seed)) for seed in range(3))
