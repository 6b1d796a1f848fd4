"""Another PostgreSQL takes the place of the one that died: one that has all commits, or one that was behind."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer.cluster.joining import join
from ai_whisperer.errors import StoreLostError
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.contract.test_hosts import card
from tests.contract.test_postgresql_outages import check_once, counting
from tests.postgresql import VARIABLE, Server, free_port, running_server

pytestmark = pytest.mark.skipif(
    "://" in os.environ.get(VARIABLE, ""), reason="the server is another's, and is not killed"
)

PATIENCE_SECONDS = 60.0
UNITS = 6


class Pair:
    """Two servers on this machine: the second begins with the data that the first had when it was copied."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        folder.chmod(0o755)  # another user runs the servers if root runs the tests
        self._folders = folder / "first", folder / "second"
        self._ports = free_port(), free_port()
        self._stack = stack
        self._first: AsyncExitStack | None = None
        self.address = f"postgresql://tester@127.0.0.1:{self._ports[0]},127.0.0.1:{self._ports[1]}/postgres"

    async def start(self, number: int) -> Server:
        self._folders[number].mkdir(exist_ok=True)
        context = running_server(folder=self._folders[number], port=self._ports[number])
        server = await asyncio.to_thread(context.__enter__)
        own = AsyncExitStack()
        own.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
        await self._stack.enter_async_context(own)
        if not number:
            self._first = own
        return server

    async def copy(self, *, follows: bool = False) -> None:
        """Stop the first, and let the second have what it has; one that `follows` stays its standby."""
        assert self._first is not None
        await self._first.aclose()
        source, copy = (each / "data" for each in self._folders)
        shutil.copytree(source, copy)
        if follows:
            (copy / "standby.signal").touch()
            with (copy / "postgresql.auto.conf").open("a") as settings:
                settings.write(f"primary_conninfo = 'host=127.0.0.1 port={self._ports[0]} user=tester'\n")
        owner = source.stat()
        for path in (copy, *copy.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="whisperer-pg-", ignore_cleanup_errors=True))
        yield Pair(Path(folder), stack)


def test_the_store_goes_on_at_a_synchronous_standby_that_takes_over() -> None:
    async def scenario() -> None:
        async with pair() as servers:
            await servers.start(0)
            store = await PostgresqlStore.open(servers.address, patience_seconds=PATIENCE_SECONDS)
            try:
                await store.submit(counting(0))
                await servers.copy(follows=True)
                primary, standby = await servers.start(0), await servers.start(1)
                await primary._run("ALTER SYSTEM SET synchronous_standby_names='*'", "postgres")
                await primary._run("SELECT pg_reload_conf()", "postgres")
                await store.submit(counting(1))
                under_way = [store.submit(counting(number)) for number in range(2, UNITS)]
                await asyncio.to_thread(primary.kill)
                assert [tuple(row) for row in await standby._run("SELECT pg_promote()", "postgres")] == [(True,)]
                await asyncio.gather(*under_way)
                await check_once(store, UNITS)
            finally:
                await store.close()

    asyncio.run(scenario())


def test_nodes_stop_at_a_standby_that_was_behind_and_say_by_how_much() -> None:
    async def scenario() -> None:
        async with pair() as servers, AsyncExitStack() as joined:

            async def node(name: str) -> PostgresqlStore:
                store = await join(servers.address, card(name), patience_seconds=PATIENCE_SECONDS)
                joined.push_async_callback(store.close)
                return store

            await servers.start(0)
            early = await node("early")
            await early.claim("s")
            await early.submit(counting(0))
            await servers.copy()
            primary = await servers.start(0)
            for number in (1, 2):
                await early.submit(counting(number))
            late = await node("late")
            absent: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
            late.watch(absent.set_result)
            await asyncio.to_thread(primary.kill)
            await servers.start(1)
            with pytest.raises(StoreLostError, match=r"has lost 2 commits .* Start again to continue without them"):
                await early.submit(counting(3))
            assert "has lost the last commits, and that this node joined" in str(await absent)

    asyncio.run(scenario())
