"""Databases that cannot be used, or not as they are: what is wrong is said with what to do, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

import asyncpg

from ai_whisperer.cluster.joining import join
from ai_whisperer.errors import StoreError, StoreFailedError
from ai_whisperer.store.postgresql import checking, migrating
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.contract.test_hosts import card
from tests.contract.test_postgresql_outages import check_once, counting
from tests.postgresql import Server


@asynccontextmanager
async def refusing(code: str, words: str) -> AsyncIterator[str]:
    """The address of something that speaks as PostgreSQL does and refuses each connection so."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big") - 4)
        fields = f"SFATAL\0VFATAL\0C{code}\0M{words}\0\0".encode()
        writer.write(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield f"postgresql://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}/agents?sslmode=disable"


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (
            "28P01",
            'password authentication failed for user "me"',
            "does not let us in at .* Correct the user and",
        ),
        ("08P01", "unsupported startup parameter: jit", "a pooler, probably. Give the address of PostgreSQL itself"),
        ("53300", "sorry, too many clients already", "takes no more connections. Raise max_connections"),
    ],
    ids=["wrong password", "pooler", "too many connections"],
)
def test_what_refuses_the_connection_is_told_with_what_to_do(code: str, words: str, told: str) -> None:
    async def scenario() -> None:
        async with refusing(code, words) as address:
            for use in (PostgresqlStore.open, checking.check):
                with pytest.raises(StoreError, match=told) as caught:
                    await use(address)
                assert "secret" not in str(caught.value)

    asyncio.run(scenario())


def test_a_pooler_that_lets_us_in_is_found_by_who_answers(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncpg.Connection, "get_server_pid", lambda _: 1)
    with pytest.raises(StoreError, match=r"A pooler such as PgBouncer stands before .* Give the address of PostgreSQL"):
        asyncio.run(PostgresqlStore.open(database))


def test_what_is_committed_is_durable_whatever_the_server_is_set_to(postgresql_server: Server, database: str) -> None:
    postgresql_server.run(f"ALTER DATABASE {database.rpartition('/')[2]} SET synchronous_commit=off")

    async def scenario() -> None:
        assert any("synchronous_commit is off: AI Whisperer turns it" in each for each in (await advice(database)))
        store = await PostgresqlStore.open(database)
        try:
            assert await (await store._lane.connected()).fetchval("SHOW synchronous_commit") == "on"
            store._lane.lose()
            await store.submit(counting(0))
            assert await (await store._lane.connected()).fetchval("SHOW synchronous_commit") == "on"
        finally:
            await store.close()

    asyncio.run(scenario())


async def advice(database: str) -> tuple[str, ...]:
    return (await checking.check(database)).advice


def test_an_older_database_is_brought_up_to_date_with_what_is_in_it(
    postgresql_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = migrating.migrations()
    first = min(scripts)
    with postgresql_server.database(empty=True) as address, monkeypatch.context() as patch:
        patch.setattr(migrating, "migrations", lambda: {first: scripts[first]})
        assert asyncio.run(checking.migrate(address)) == (0, first)
        name = address.rpartition("/")[2]
        postgresql_server.run("INSERT INTO whisperer.session VALUES ('s', 'kept', 'local', 1.0)", name)
        patch.undo()

        async def scenario() -> None:
            store = await PostgresqlStore.open(address)
            try:
                kept = await store.session("s")
                assert kept is not None
                assert kept.title == "kept"
            finally:
                await store.close()
            report = await checking.check(address)
            assert report.schema == report.latest == max(scripts)

        asyncio.run(scenario())


def test_a_database_that_becomes_read_only_is_told_of_when_there_is_no_more_patience(
    postgresql_server: Server, database: str
) -> None:
    name = database.rpartition("/")[2]

    async def scenario() -> None:
        store = await PostgresqlStore.open(database, patience_seconds=0.3)
        try:
            await store.submit(counting(0))
            await postgresql_server._run(f"ALTER DATABASE {name} SET default_transaction_read_only=on", "postgres")
            store._lane.lose()
            with pytest.raises(
                StoreFailedError, match=r"has taken writes for 0.3 s: .* Let one of them take writes, and start again"
            ):
                await store.submit(counting(1))
        finally:
            await store.close()
        await postgresql_server._run(f"ALTER DATABASE {name} RESET default_transaction_read_only", "postgres")
        store = await PostgresqlStore.open(database)
        try:
            await check_once(store, 1)
        finally:
            await store.close()

    asyncio.run(scenario())


def test_who_joins_nodes_of_another_cluster_on_the_same_database_is_warned(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def joined(name: str, settings: str, then: Callable[[], Awaitable[None]] | None = None) -> None:
        store = await join(database, replace(card(name), settings=settings), patience_seconds=10)
        try:
            if then is not None:
                await then()
        finally:
            await store.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(joined("a", "one", lambda: joined("b", "one")))
        assert not caplog.messages
        asyncio.run(joined("a", "one", lambda: joined("b", "two")))
    (told,) = caplog.messages
    assert "than this one: a. Sessions go from one to the other" in told
    assert "a database of their own" in told
