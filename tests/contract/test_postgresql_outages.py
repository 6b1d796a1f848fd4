"""Connections that are lost at any byte: what was sent takes effect once, and after the patience everything stops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.errors import StoreError, StoreFailedError, StoreReadOnlyError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.postgresql.connecting import CONNECT_SECONDS, connect
from ai_whisperer.store.postgresql.lane import Fence, Lane
from ai_whisperer.store.postgresql.merging import Wave
from ai_whisperer.store.postgresql.pool import MOST_READERS, Readers
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.contract.records import task, tell, unit_with
from tests.postgresql import VARIABLE, Server, running_server
from tests.proxy import Proxy

UNITS = 6


def counting(number: int) -> Unit:
    """A unit that would show if it were done twice: a task that is counted in its thread."""
    unit = Unit()
    unit.insert_task(task(f"t{number}", arrival=number, thread_id="th"))
    tell(unit, "s", f"n{number}", params={"n": number})
    return unit


async def check_once(store: PostgresqlStore, units: int) -> None:
    assert [note.name for note in await store.notifications("s", after=0, limit=99)] == [f"n{n}" for n in range(units)]
    (thread,) = await store.threads_of_agent("s", "alice")
    assert thread.tasks == units


async def told_of_a_warning(store: PostgresqlStore) -> None:
    """Wait until there is one. Nobody tells of it, it is asked for."""
    loop = asyncio.get_running_loop()
    told = loop.create_future()

    def look() -> None:
        if store.health.warning is None:
            loop.call_later(0.01, look)
        else:
            told.set_result(None)

    look()
    await told


def test_a_group_whose_answer_is_lost_at_any_byte_takes_effect_once(postgresql_server: Server) -> None:
    cuts = 0

    async def scenario(address: str, cut_after: int) -> int:
        proxy = Proxy(address)
        async with proxy.running() as through:
            store = await PostgresqlStore.open(through, patience_seconds=20)
            try:
                await store.submit(counting(0))
                proxy.cut_after = cut_after
                for number in range(1, UNITS):
                    await store.submit(counting(number))
                await check_once(store, UNITS)
            finally:
                await store.close()
        return proxy.cuts

    for cut_after in (0, 5, 61, 140, 300):
        with postgresql_server.database() as address:
            cuts += asyncio.run(scenario(address, cut_after))
    assert cuts >= 4, "the harness cuts nothing"


def test_a_connection_that_nothing_is_heard_of_is_soon_tried_again(database: str) -> None:
    async def scenario() -> None:
        proxy = Proxy(database)
        async with proxy.running() as through:
            proxy.deaf = 1
            async with asyncio.timeout(CONNECT_SECONDS):  # no attempt is given as long before another is made
                connection = await connect(through, name="test")
            assert proxy.deaf == 0
            await connection.close()

    asyncio.run(scenario())


def test_what_is_given_up_at_any_moment_leaves_no_exception_that_nobody_hears_of(database: str) -> None:
    heard: list[dict[str, Any]] = []

    async def connected() -> None:
        (await connect(database, name="test")).terminate()

    async def asked() -> None:
        connection = await connect(database, name="test")
        try:
            await connection.fetchval("SELECT 1 FROM pg_class LIMIT $1", 1)
        finally:
            connection.terminate()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context))
        for work in (connected, asked):
            for steps in (*range(40), *range(40, 400, 20)):
                under_way = asyncio.create_task(work())
                for _ in range(steps):
                    await asyncio.sleep(0)
                under_way.cancel()
                await asyncio.gather(under_way, return_exceptions=True)
        for _ in range(20):
            await asyncio.sleep(0)
        gc.collect()

    asyncio.run(scenario())
    assert heard == []


def test_readers_are_closed_while_others_read_and_read_nothing_after_that(
    postgresql_server: Server, database: str
) -> None:
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE application_name='test' AND state='active'"
    there = "SELECT count(*) FROM pg_stat_activity WHERE application_name='test'"

    async def counted(sql: str) -> int:
        return int((await postgresql_server._run(sql, database.rpartition("/")[2]))[0][0])

    async def scenario() -> None:
        readers = Readers(database, name="test", patience_seconds=30)
        reads = [
            asyncio.create_task(readers.read(lambda each: each.execute("SELECT pg_sleep(60)")))
            for _ in range(MOST_READERS + 1)
        ]
        while await counted(sleeping) < MOST_READERS:
            pass
        await readers.close()
        for outcome in await asyncio.gather(*reads, return_exceptions=True):
            assert isinstance(outcome, StoreError)
        with pytest.raises(StoreFailedError, match="The store is closed"):
            await readers.read(lambda each: each.fetchval("SELECT 1"))
        while await counted(there):
            pass

    asyncio.run(scenario())


def test_the_system_finds_out_that_the_machine_of_a_server_is_gone(database: str) -> None:
    async def scenario() -> None:
        connection = await connect(database, name="test")
        opened = connection._transport.get_extra_info("socket")
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if sys.platform == "linux":
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
            idle, pauses, pause = (
                opened.getsockopt(socket.IPPROTO_TCP, each)
                for each in (socket.TCP_KEEPIDLE, socket.TCP_KEEPCNT, socket.TCP_KEEPINTVL)
            )
            assert idle + pauses * pause <= 11
        await connection.close()

    asyncio.run(scenario())


def test_an_answer_that_comes_to_nobody_is_known_by_the_number_of_the_group(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, lost = Lane.write, 0

    async def written_and_lost(self: Lane, fence: Fence, waves: Sequence[Wave]) -> None:
        nonlocal lost
        await write(self, fence, waves)
        if lost < 2:
            lost += 1
            raise ConnectionResetError

    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        monkeypatch.setattr(Lane, "write", written_and_lost)
        for number in range(UNITS):
            await store.submit(counting(number))
        await check_once(store, UNITS)
        await store.close()

    asyncio.run(scenario())
    assert lost == 2


@pytest.mark.planted("outages of PostgreSQL", name="send a group again under another number")
def test_a_group_that_is_sent_again_under_another_number_would_be_found(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, lost = Lane.write, 0

    async def written_and_lost(self: Lane, fence: Fence, waves: Sequence[Wave]) -> None:
        nonlocal lost
        await write(self, fence._replace(number=fence.number + lost), waves)
        if not lost:
            lost += 1
            raise ConnectionResetError

    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        monkeypatch.setattr(Lane, "write", written_and_lost)
        try:
            for number in range(UNITS):
                await store.submit(counting(number))
            await check_once(store, UNITS)
        finally:
            await store.close()

    with pytest.raises((StoreError, AssertionError)):
        asyncio.run(scenario())


def test_a_connection_that_the_server_is_closing_is_made_again(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        store = await PostgresqlStore.open(database)
        for number in range(UNITS):
            ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'whisperer %'"
            await postgresql_server._run(ending, database.rpartition("/")[2])
            await store.submit(counting(number))
        await check_once(store, UNITS)
        await store.close()

    asyncio.run(scenario())


def test_what_is_refused_after_a_lost_connection_is_refused_alone(database: str) -> None:
    async def scenario() -> None:
        proxy = Proxy(database)
        async with proxy.running() as through:
            store = await PostgresqlStore.open(through)
            await store.submit(unit_with(task("t1")))
            proxy.cut()
            results = await asyncio.gather(
                store.submit(unit_with(task("t2"))),
                store.submit(unit_with(task("t1"))),
                store.submit(unit_with(task("t3"))),
                return_exceptions=True,
            )
            assert [each is None for each in results] == [True, False, True]
            await store.close()

    asyncio.run(scenario())


def test_the_store_goes_on_when_the_database_is_back_and_tells_meanwhile(database: str) -> None:
    async def scenario() -> None:
        proxy = Proxy(database)
        async with proxy.running() as through:
            store = await PostgresqlStore.open(through, patience_seconds=20)
            await store.submit(counting(0))
            proxy.takes = False
            proxy.cut()
            durable = store.submit(counting(1))
            reading = asyncio.ensure_future(store.task("s", "t0"))
            await told_of_a_warning(store)
            assert await asyncio.to_thread(lambda: store.health.warning), "a thread may ask too"
            assert "has not answered for" in (store.health.warning or "")
            assert not durable.done()
            proxy.takes = True
            await durable
            assert await reading is not None
            assert store.health.warning is None
            await check_once(store, 2)
            await store.close()

    asyncio.run(scenario())


def test_a_database_that_stays_away_ends_the_store(database: str) -> None:
    async def scenario() -> None:
        proxy = Proxy(database)
        async with proxy.running() as through:
            failures: list[BaseException] = []
            store = await PostgresqlStore.open(through, patience_seconds=0.3)
            store.watch(failures.append)
            await store.submit(counting(0))
            proxy.takes = False
            proxy.cut()
            with pytest.raises(
                StoreFailedError, match=r"has not answered for 0.3 s .* nothing that was accepted is lost"
            ):
                await store.submit(counting(1))
            assert len(failures) == 1
            with pytest.raises(StoreFailedError, match="has not answered") as unread:
                await store.sessions_with_work()
            for told in (failures[0], unread.value):
                assert urlsplit(through).netloc.rpartition("@")[2] not in str(told), "clients are told this"
                assert str(urlsplit(through).port) not in str(told)
            await store.close()
        store = await PostgresqlStore.open(database)
        await check_once(store, 1)
        await store.close()

    asyncio.run(scenario())


def test_the_store_goes_on_over_a_crash_of_the_server() -> None:
    if "://" in os.environ.get(VARIABLE, ""):
        pytest.skip("the server is another's, and is not crashed")

    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="whisperer-pg-")))

            async def started(port: int = 0) -> Server:
                context = running_server(folder=folder, port=port)
                stack.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
                return await asyncio.to_thread(context.__enter__)

            server = await started()
            store = await PostgresqlStore.open(server.address(), patience_seconds=60)
            try:
                await store.submit(counting(0))
                under_way = [store.submit(counting(number)) for number in range(1, UNITS)]
                await asyncio.to_thread(server.kill)
                await started(urlsplit(server.address()).port or 0)
                await asyncio.gather(*under_way)
                await check_once(store, UNITS)
            finally:
                await store.close()

    asyncio.run(scenario())


def test_of_several_hosts_the_one_that_takes_writes_is_used(database: str) -> None:
    async def scenario() -> None:
        store = await PostgresqlStore.open(database.replace("@", "@127.0.0.1:1,"))
        await store.submit(counting(0))
        await check_once(store, 1)
        await store.close()

    asyncio.run(scenario())


def test_a_server_that_takes_no_writes_is_told_of(postgresql_server: Server, database: str) -> None:
    name = database.rpartition("/")[2]
    postgresql_server.run(f"ALTER DATABASE {name} SET default_transaction_read_only=on")
    with pytest.raises(StoreReadOnlyError, match="takes writes: what answers there is a standby, or is read-only"):
        asyncio.run(PostgresqlStore.open(database))
