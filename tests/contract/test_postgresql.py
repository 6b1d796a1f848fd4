"""What PostgreSQL's store does beside the contract: its tables, who has the database, and what it refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.errors import (
    StoreCorruptError,
    StoreError,
    StoreFailedError,
    StoreInUseError,
    StoreReadOnlyError,
    StoreRefusedError,
    StoreVersionError,
)
from ai_whisperer.store.base import Unit
from ai_whisperer.store.postgresql import connecting, migrating
from ai_whisperer.store.postgresql import lane as lanes
from ai_whisperer.store.postgresql.addresses import hosts_apart, shown
from ai_whisperer.store.postgresql.migrating import latest_version
from ai_whisperer.store.postgresql.statements import TYPES
from ai_whisperer.store.postgresql.store import PostgresqlStore
from ai_whisperer.store.sqlite import opening
from ai_whisperer.store.tables import DELETION, OF_A_SESSION, SESSION, SHAPE, Table
from tests.contract.records import task, tell, unit_with
from tests.contract.test_session_contract import a_row_in_every_table
from tests.postgresql import Server

ALL_TABLES: tuple[Table[Any], ...] = (SESSION, DELETION, SHAPE, *OF_A_SESSION)
OWN_COLUMNS = {"task": ["row"], "event": ["row"], "notification": ["epoch"]}
OWN_TABLES = {"meta", "cluster", "host", "departed", "files_at", "writer", "placement"}
OWN_INDEXES = {"host_by_name", "placement_by_writer", "placement_wanted", "placement_moving"}


def test_both_dialects_have_the_same_versions() -> None:
    assert migrating.latest_version() == opening.latest_version()


def test_both_dialects_have_the_same_tables_and_columns(postgresql_server: Server, database: str) -> None:
    sqlite = apsw.Connection(":memory:")
    opening.migrate(sqlite)
    rows = postgresql_server.run(
        "SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns "
        "WHERE table_schema='whisperer' ORDER BY table_name, ordinal_position",
        database.rpartition("/")[2],
    )
    made: dict[str, list[tuple[str, str, bool]]] = {}
    for table, column, kind, nullable, collation in rows:
        assert collation == ("C" if kind == "text" else None), f"{table}.{column}"
        made.setdefault(table, []).append((column, kind, nullable == "NO"))
    of_sqlite = {name for (name,) in sqlite.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert set(made) == of_sqlite | OWN_TABLES
    for table in ALL_TABLES:
        own = OWN_COLUMNS.get(table.name, [])
        known = [each for each in made[table.name] if each[0] not in own]
        assert known == [(each.name, TYPES[each.kind], not each.is_nullable) for each in table.columns]
        names = [row[0] for row in sqlite.execute("SELECT name FROM pragma_table_info(?)", (table.name,))]
        assert [name for name, _, _ in known] == names


def _covered(sql: str) -> tuple[str, list[str]]:
    """What an index covers, whichever dialect tells it: its columns, and the words of its condition."""
    columns, _, condition = sql.replace('"', "").replace("\n", " ").partition(" (")[2].partition(" WHERE ")
    words = re.sub("::text|ANY|ALL|ARRAY|IN|NOT|NULL|IS|AND", "", condition)
    return columns.strip(" )").replace(", row", ""), sorted(re.findall("[a-z_]+", words))


def test_the_columns_and_the_condition_of_an_index_are_compared() -> None:
    asked = "CREATE INDEX i ON t (a, b) WHERE state IN ('dead', 'failed') AND c IS NULL"
    told = "CREATE INDEX i ON w.t (a, b, \"row\") WHERE ((state = ANY (ARRAY['dead'::text, 'failed'])) AND (c IS NULL))"
    assert _covered(asked) == _covered(told) == ("a, b", ["c", "dead", "failed", "state"])


def test_both_dialects_have_the_same_indexes(postgresql_server: Server, database: str) -> None:
    sqlite = apsw.Connection(":memory:")
    opening.migrate(sqlite)
    found = sqlite.execute("SELECT name, sql FROM sqlite_master WHERE type='index' AND sql IS NOT NULL")
    expected = {name: ("UNIQUE" in sql, _covered(sql)) for name, sql in found}
    rows = postgresql_server.run(
        "SELECT indexname, replace(indexdef, 'USING btree ', '') FROM pg_indexes "
        "WHERE schemaname='whisperer' AND indexname NOT LIKE '%_pkey'",
        database.rpartition("/")[2],
    )
    made = {name: ("UNIQUE" in sql, _covered(sql)) for name, sql in rows}
    assert {name: told for name, told in made.items() if name not in OWN_INDEXES} == expected
    assert made.keys() >= OWN_INDEXES
    keys = postgresql_server.run(
        "SELECT indrelid::regclass::text, array(SELECT attname FROM unnest(indkey) WITH ORDINALITY AS k (n, o) "
        "JOIN pg_attribute ON attrelid=indrelid AND attnum=k.n ORDER BY o) FROM pg_index "
        "JOIN pg_class ON pg_class.oid=indrelid JOIN pg_namespace ON pg_namespace.oid=relnamespace "
        "WHERE indisprimary AND nspname='whisperer'",
        database.rpartition("/")[2],
    )
    primary = {name.rpartition(".")[2].strip('"'): tuple(columns) for name, columns in keys}
    assert {table.name: primary[table.name] for table in ALL_TABLES} == {table.name: table.key for table in ALL_TABLES}


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def test_one_process_has_the_database(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_LOCK_SECONDS", 0.1)

    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        with pytest.raises(StoreInUseError, match=r"A process \(whisperer \d+ .* has the database at .* Stop it"):
            await PostgresqlStore.open(database)
        await store.submit(unit_with(task()))
        await store.close()
        await (await PostgresqlStore.open(database)).close()

    run(scenario)


def test_whoever_was_replaced_writes_nothing_more(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        await store.submit(unit_with(task("t1"), note="a"))
        await postgresql_server._run("UPDATE whisperer.writer SET epoch=epoch+1", database.rpartition("/")[2])
        with pytest.raises(StoreFailedError, match="Another process has taken over"):
            await store.submit(unit_with(task("t2"), note="b"))
        assert await store.task("s", "t2") is None
        with pytest.raises(StoreFailedError):
            await store.submit(unit_with(task("t3")))
        await store.close()

    run(scenario)


def test_a_database_that_has_lost_commits_is_not_gone_on_with(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        for number in range(3):
            await store.submit(unit_with(task(f"t{number}"), note="a"))
        await postgresql_server._run("UPDATE whisperer.writer SET commits=1", database.rpartition("/")[2])
        with pytest.raises(StoreError, match="has lost 2 commits that were acknowledged"):
            await store.submit(unit_with(task("t9"), note="b"))
        await store.close()

    run(scenario)


def test_units_of_sessions_that_another_has_claimed_are_refused_and_the_rest_is_written(
    postgresql_server: Server, database: str
) -> None:
    name = database.rpartition("/")[2]

    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        await postgresql_server._run(
            "INSERT INTO whisperer.placement VALUES ('s', 'main', 3), ('free', 'main', 1)", name
        )
        store._writer.claims = {"s": 3, "free": 1}
        await store.submit(unit_with(task("t1"), note="ours"))
        await postgresql_server._run(
            "UPDATE whisperer.placement SET writer_id='other', epoch=4 WHERE session_id='s'", name
        )
        other = Unit()
        tell(other, "free", "x", params={})
        results = await asyncio.gather(
            store.submit(unit_with(task("t2"), note="late")), store.submit(other), return_exceptions=True
        )
        assert [type(each) for each in results] == [StoreRefusedError, type(None)]
        rows = await postgresql_server._run(
            "SELECT session_id, seq, epoch FROM whisperer.notification ORDER BY 1", name
        )
        assert [tuple(row) for row in rows] == [("free", 1, 1), ("s", 1, 3)]
        await store.close()

    run(scenario)


def test_the_log_says_which_writer_wrote_each_entry(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        for _ in range(2):
            store = await PostgresqlStore.open(database)
            await store.submit(unit_with(note="a"))
            await store.close()

    run(scenario)
    rows = postgresql_server.run("SELECT seq, epoch FROM whisperer.notification", database.rpartition("/")[2])
    assert [tuple(row) for row in rows] == [(1, 1), (2, 2)]


def test_an_empty_database_gets_its_tables_and_a_newer_or_foreign_one_is_left_alone(
    postgresql_server: Server,
) -> None:
    with postgresql_server.database(empty=True) as address:
        name = address.rpartition("/")[2]

        async def opened() -> None:
            await (await PostgresqlStore.open(address)).close()

        run(opened)
        postgresql_server.run("UPDATE whisperer.meta SET version=9999", name)
        with pytest.raises(StoreVersionError, match=r"has version 9999.*Upgrade AI Whisperer; nothing was changed"):
            run(opened)
        postgresql_server.run(f"UPDATE whisperer.meta SET version={latest_version()}, state='copying'", name)  # noqa: S608
        with pytest.raises(StoreInUseError, match="whisperer store copy"):
            run(opened)
        postgresql_server.run("DROP TABLE whisperer.meta", name)
        with pytest.raises(StoreCorruptError, match="another program"):
            run(opened)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda address: address.replace("tester", "nobody:secret"), StoreError, "does not let us in at .*Correct the"),
        (lambda address: address + "x", StoreError, "There is no database .* createdb test_"),
        (lambda address: re.sub(r":\d+/", ":1/", address), StoreError, "No PostgreSQL answers at .* Start it"),
        (lambda _: "postgresql://", StoreError, "is no address of a PostgreSQL database. Write it like"),
        (lambda _: "postgresql://one:5432,two:5x/db", StoreError, "'5x' is no port. Ports are the numbers from 1 to"),
        (lambda address: address + "?sslmode=nonsense", StoreError, "cannot be used as an address|cannot be used"),
    ],
    ids=["user", "database", "port", "empty", "port of one", "option"],
)
def test_an_address_that_leads_nowhere_is_told_with_what_to_do(
    database: str, change: Callable[[str], str], error: type[Exception], words: str
) -> None:
    address = change(database)
    with pytest.raises(error, match=words) as caught:
        run(lambda: PostgresqlStore.open(address))  # type: ignore[arg-type, return-value]
    assert "secret" not in str(caught.value)


def test_a_user_without_rights_is_told_which_to_get(postgresql_server: Server) -> None:
    with postgresql_server.database(empty=True) as address:
        postgresql_server.run("DROP ROLE IF EXISTS weak")
        postgresql_server.run("CREATE ROLE weak LOGIN")
        try:
            weak = address.replace("tester@", "weak@")
            with pytest.raises(StoreReadOnlyError, match="GRANT CREATE ON DATABASE"):
                run(lambda: PostgresqlStore.open(weak))  # type: ignore[arg-type, return-value]
        finally:
            postgresql_server.run("DROP ROLE weak")


def test_an_old_server_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "OLDEST", 99)
    with pytest.raises(StoreVersionError, match=r"99 or newer is needed\. Upgrade it"):
        run(lambda: PostgresqlStore.open(database))  # type: ignore[arg-type, return-value]


def test_each_host_of_an_address_is_tried_by_itself() -> None:
    given = "postgresql://me:a,b@h1:1,h2:2/db?sslmode=require"
    assert hosts_apart(given) == [f"postgresql://me:a,b@{host}/db?sslmode=require" for host in ("h1:1", "h2:2")]
    assert hosts_apart("postgresql:///db?host=/run") == ["postgresql:///db?host=/run"]


def test_the_password_is_not_shown() -> None:
    given: dict[str, str] = {
        "postgresql://me:secret@h1:1,h2:2/db?password=secret&sslmode=require": "postgresql://me@h1:1,h2:2/db?sslmode=require",
        "postgresql://h/db": "postgresql://h/db",
        "me:secret@host": "host",
    }
    assert {each: shown(each) for each in given} == given


def test_a_deletion_that_the_end_of_the_process_cut_short_is_finished_at_the_next_start(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        store = await PostgresqlStore.open(database, folder=tmp_path)
        for session_id in ("s", "other"):
            await store.submit(a_row_in_every_table(session_id))
        unit = Unit()
        unit.begin_deletion("s")
        await store.submit(unit)
        store.abandon()
        store = await PostgresqlStore.open(database, folder=tmp_path)
        await store.close()

    run(scenario)
    for table in OF_A_SESSION:
        counted: list[Any] = postgresql_server.run(
            f'SELECT session_id, count(*) FROM whisperer."{table.name}" GROUP BY 1',  # noqa: S608
            database.rpartition("/")[2],
        )
        assert [row[0] for row in counted] == ["other"], table.name
