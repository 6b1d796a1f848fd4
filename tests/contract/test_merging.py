"""Writes that are merged have the effect that they have one after the other, in SQLite and in PostgreSQL."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_whisperer.store import operations, tables
from ai_whisperer.store.base import Change
from ai_whisperer.store.operations import RowOperation, Verb
from ai_whisperer.store.postgresql.merging import DuplicateRowError, Part, Wave, merged
from ai_whisperer.store.sqlite.opening import migrate
from ai_whisperer.store.sqlite.statements import STATEMENTS
from ai_whisperer.store.tables import Kind, Row, Table
from tests.effort import some

SESSIONS, NAMES, NUMBERS = ("s", "t"), ("a", "b"), (1, 2, 3)
WRITTEN: tuple[RowOperation[Any], ...] = (
    operations.INSERT_AGENT,
    operations.UPDATE_AGENT,
    operations.UPDATE_DEFINITION,
    operations.DELETE_AGENT,
    operations.COUNT_IN_THREAD,
    operations.PUT_STEP,
    operations.BEGIN_STEP,
    operations.DELETE_STEPS,
    operations.PUT_APPROVAL,
    operations.DELETE_APPROVALS,
    operations.PUT_COMPACTED,
    operations.DELETE_COMPACTED_OF_THREAD,
    operations.DELETE_COMPACTED_OF_AGENT,
    operations.PUT_TIMER,
    operations.DELETE_TIMER,
    operations.PUT_DELETION,
    operations.INSERT_NOTIFICATION,
    operations.ERASE_NOTIFICATION,
    operations.DELETE_NOTIFICATIONS,
    *(operations.DELETE_SOME[each] for each in (tables.STEP, tables.THREAD, tables.AGENT)),
)
TABLES = tuple(dict.fromkeys(operation.table for operation in WRITTEN))
ALL_ROWS = 1 << 40


@st.composite
def a_change(draw: st.DrawFn) -> Change:
    operation = draw(st.sampled_from(WRITTEN))
    return operation, tuple(draw(_value_of(column.name, column.kind)) for column in operation.columns)


def _value_of(name: str, kind: Kind) -> st.SearchStrategy[Any]:
    if name == "limit":
        return st.just(ALL_ROWS)  # of fewer, each database takes those that it likes
    if name == "session_id":
        return st.sampled_from(SESSIONS)
    if kind is Kind.INTEGER:
        return st.sampled_from(NUMBERS)
    if kind is Kind.REAL:
        return st.sampled_from((1.0, 2.5))
    if kind is Kind.BOOLEAN:
        return st.booleans()
    return st.sampled_from((b"x", b"y")) if kind is Kind.BYTES else st.sampled_from(NAMES)


Story = tuple[list[Change], list[Change]]
STORIES: st.SearchStrategy[Story] = st.tuples(
    st.lists(a_change(), max_size=12), st.lists(a_change(), min_size=1, max_size=12)
)


def database_with(changes: Iterable[Change]) -> apsw.Connection:
    """A database with the effect of those changes that it takes."""
    connection = apsw.Connection(":memory:")
    migrate(connection)
    for operation, values in changes:
        try:
            connection.execute(STATEMENTS[operation], values)
        except apsw.ConstraintError:
            continue
    return connection


def rows_in(connection: apsw.Connection) -> dict[str, list[Row]]:
    return {table.name: sorted(connection.execute(f"SELECT * FROM {table.name}"), key=repr) for table in TABLES}  # noqa: S608


def one_after_the_other(connection: apsw.Connection, changes: Sequence[Change]) -> dict[str, list[Row]] | None:
    """What there is afterwards; None if one of them is refused."""
    try:
        for operation, values in changes:
            connection.execute(STATEMENTS[operation], values)
    except apsw.ConstraintError:
        return None
    return rows_in(connection)


def in_waves(connection: apsw.Connection, changes: Sequence[Change], *, chance: random.Random) -> Any:
    """The same for merged changes; within a wave they are done in any order."""
    try:
        for wave in merged(changes):
            writes = [(part, row) for part, rows in wave.items() for row in rows]
            chance.shuffle(writes)
            for part, row in writes:
                connection.execute(_sql_of(part), row)
    except (DuplicateRowError, apsw.ConstraintError):
        return None
    return rows_in(connection)


def _sql_of(part: Part) -> str:
    name, key = part.table.name, part.table.key
    same = " AND ".join(f"{each}=?" for each in key)
    match part.verb:
        case Verb.INSERT | Verb.PUT:
            how = "INSERT" if part.verb is Verb.INSERT else "INSERT OR REPLACE"
            return f"{how} INTO {name} ({', '.join(part.columns)}) VALUES ({', '.join('?' for _ in part.columns)})"
        case Verb.UPDATE:
            return f"UPDATE {name} SET {', '.join(f'{each}=?' for each in part.columns[: -len(key)])} WHERE {same}"  # noqa: S608
        case Verb.DELETE:
            return f"DELETE FROM {name} WHERE {same}"  # noqa: S608
        case Verb.COUNT:
            return STATEMENTS[operations.COUNT_IN_THREAD]
        case Verb.DELETE_BELOW:
            return STATEMENTS[operations.DELETE_NOTIFICATIONS]
        case Verb.DELETE_SOME:
            which = " AND ".join(f"{each}=?" for each in part.columns[:-1])
            return f"DELETE FROM {name} WHERE {which} AND ?"  # noqa: S608


@settings(max_examples=some(80), deadline=None)
@given(story=STORIES, seed=st.integers(0, 1_000))
def test_merged_writes_have_the_effect_of_the_writes_one_after_the_other(story: Story, seed: int) -> None:
    before, changes = story
    expected = one_after_the_other(database_with(before), changes)
    assert in_waves(database_with(before), changes, chance=random.Random(seed)) == expected


def test_no_wave_touches_a_row_twice() -> None:
    agent = ("s", "a", *("x",) * (len(tables.AGENT.columns) - 2))
    changes: list[Change] = [
        (operations.INSERT_AGENT, agent),
        (operations.UPDATE_DEFINITION, ("new", "own", "s", "a")),
        (operations.DELETE_AGENT, ("s", "a")),
        (operations.INSERT_AGENT, agent),
    ]
    first, second = merged(changes)
    assert [(part.verb, len(rows)) for part, rows in first.items()] == [(Verb.INSERT, 1)]
    assert [(part.verb, len(rows)) for part, rows in second.items()] == [(Verb.PUT, 1)]
    with pytest.raises(DuplicateRowError):
        merged([changes[0], changes[0]])


def test_an_operation_of_another_store_is_refused() -> None:
    with pytest.raises(TypeError):
        merged([(operations.Operation(), ())])


def _values(table: Table[Any], row: Sequence[Any]) -> Row:
    """A row of PostgreSQL as SQLite has it."""
    return tuple(int(value) if isinstance(value, bool) else value for value in row[: len(table.columns)])


def test_postgresql_does_with_merged_writes_what_sqlite_does_one_after_the_other(database: str) -> None:
    import asyncpg

    from ai_whisperer.store.postgresql.lane import ALONE, Fence, Lane
    from ai_whisperer.store.postgresql.queries import columns_of
    from ai_whisperer.store.postgresql.statements import with_epoch

    def stamped(wave: Wave) -> Wave:
        return {
            (written := with_epoch(part)): rows if written is part else [(*row, 1) for row in rows]
            for part, rows in wave.items()
        }

    async def tried(lane: Lane, story: Story, number: int) -> int:
        before, changes = story
        connection = await lane.connected()
        await connection.execute(f"TRUNCATE {', '.join(table.name for table in TABLES)}")
        start = database_with(before)
        begun = [
            {Part(Verb.INSERT, table, tuple(each.name for each in table.columns)): rows}
            for table in TABLES
            if (rows := [_typed(table, row) for row in start.execute(f"SELECT * FROM {table.name}")])  # noqa: S608
        ]
        expected = one_after_the_other(start, changes)
        if begun:
            number += 1
            await lane.write(Fence(ALONE, 1, number), [stamped(each) for each in begun])
        try:
            await lane.write(Fence(ALONE, 1, number + 1), [stamped(each) for each in merged(changes)])
        except (DuplicateRowError, asyncpg.UniqueViolationError):
            assert expected is None
            return number
        found = {}
        for table in TABLES:
            rows = await connection.fetch(f'SELECT {columns_of(table)} FROM "{table.name}"')  # noqa: S608
            found[table.name] = sorted((_values(table, row) for row in rows), key=repr)
        assert found == expected
        return number + 1

    async def main() -> None:
        lane, number = Lane(database, name="test"), 0
        try:
            await lane.take()
            assert await lane.begin() == 1
            for story in _stories(60):
                number = await tried(lane, story, number)
        finally:
            await lane.close()

    asyncio.run(main())


def _typed(table: Table[Any], row: Row) -> Row:
    kinds = (column.kind for column in table.columns)
    return tuple(bool(value) if kind is Kind.BOOLEAN else value for kind, value in zip(kinds, row, strict=True))


def _stories(count: int) -> list[Story]:
    """So many stories, the same ones each time."""
    stories: list[Story] = []

    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(STORIES)
    def collect(story: Story) -> None:
        stories.append(story)

    collect()
    return stories
