"""Several processes on one PostgreSQL database: each session is at one of them, and who is replaced writes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.cluster.beating import Beating
from ai_whisperer.cluster.joining import join
from ai_whisperer.cluster.membership import membership_of
from ai_whisperer.domain.clock import SystemClock
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.nodes import Draining, NodeCard
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import (
    SessionElsewhereError,
    StateError,
    StoreFailedError,
    StoreInUseError,
    StoreLostError,
    StoreRefusedError,
    StoreVersionError,
    UnknownNodeError,
)
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.base import Unit
from ai_whisperer.store.postgresql import node_queries as queries
from ai_whisperer.store.postgresql.connecting import connect
from ai_whisperer.store.postgresql.store import PostgresqlStore
from ai_whisperer.tools.commands import COMMAND_TOOLS
from tests.contract.records import agent, task, unit_with
from tests.contract.test_session_contract import a_row_in_every_table
from tests.postgresql import Server

NO_FENCE = """
CREATE OR REPLACE FUNCTION whisperer.hold(my_id text, my_epoch bigint, n bigint, sessions text[], epochs bigint[])
RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$"""


_MOVING_TO_B = "UPDATE whisperer.placement SET target=host.id FROM whisperer.host WHERE host.name='b'"


def card(name: str, *, serves: bool = True, version: str = "0.1.0", strength: int = 0) -> NodeCard:
    return NodeCard(name=name, address=f"http://{name}:1", version=version, serves=serves, strength=strength)


@asynccontextmanager
async def joined(address: str, *names: str, folder: Path | None = None) -> AsyncIterator[list[PostgresqlStore]]:
    stores: list[PostgresqlStore] = []
    try:
        for name in names:
            stores += [await join(address, card(name), folder=folder, patience_seconds=10)]
        yield stores
    finally:
        for store in stores:
            await store.close()


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def made(session_id: str) -> Unit:
    unit = Unit()
    unit.insert_session(SessionRecord(id=session_id, title="", owner="local", created_at=1.0))
    return unit


async def asked(server: Server, address: str, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await server._run(sql, address.rpartition("/")[2])]


async def removed(server: Server, address: str, name: str, *, has_ended: bool = True) -> None:
    """Let the others take the node for dead."""
    await server._run(
        f"SELECT set_config('search_path', 'whisperer', false), "  # noqa: S608
        f"whisperer.remove_host(id, NULL, {has_ended}) "
        f"FROM whisperer.host WHERE name='{name}'",
        address.rpartition("/")[2],
    )


def test_a_session_is_at_one_node_and_the_other_is_told_which(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            assert await a.claim("s")
            assert not await a.claim("s")
            with pytest.raises(SessionElsewhereError, match=r"The node 'a' at http://a:1 has the session 's'") as told:
                await b.claim("s")
            assert told.value.data == {"node": "a", "address": "http://a:1"}
            assert await b.claim("other")
            await a.submit(unit_with(task("t1"), note="from a"))
            await a.release("s")
            assert await b.claim("s")
            await b.submit(unit_with(task("t2"), note="from b"))
            await b.release("s")
            assert await a.claim("s")
            await a.submit(unit_with(task("t3"), note="from a again"))
            notes = await a.notifications("s", after=0, limit=9)
            assert [(each.seq, each.name) for each in notes] == [(1, "from a"), (2, "from b"), (3, "from a again")]

    play(scenario)


def test_the_epochs_in_the_log_rise_with_those_who_have_the_session(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        alone = await PostgresqlStore.open(database)
        await alone.submit(unit_with(note="alone"))
        await alone.close()
        async with joined(database, "a", "b") as stores:
            for number in range(4):
                store = stores[number % 2]
                await store.claim("s")
                await store.submit(unit_with(note="x"))
                await store.release("s")
        rows = await asked(postgresql_server, database, "SELECT seq, epoch FROM whisperer.notification ORDER BY seq")
        assert rows == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]

    play(scenario)


async def a_removed_node_writes(server: Server, address: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what a node sends after others have taken its place is written."""

    async def no_beat(self: Beating) -> None:
        """The thread does not tell that the node was removed: the commit has to find out."""

    with monkeypatch.context() as patch:
        patch.setattr(Beating, "_beat", no_beat)
        stores = [await join(address, card(name), patience_seconds=10) for name in ("a", "b")]
    a, b = stores
    try:
        await a.claim("s")
        await a.submit(unit_with(task("t1")))
        await removed(server, address, "a")
        await b.claim("s")
        try:
            await a.submit(unit_with(task("late")))
        except StoreFailedError:
            return False
        return await b.task("s", "late") is not None
    finally:
        for store in stores:
            await store.close()


def test_a_node_that_others_took_for_dead_writes_nothing(
    postgresql_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not asyncio.run(a_removed_node_writes(postgresql_server, database, monkeypatch))


def test_without_the_fence_it_would_write(
    postgresql_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql_server.run(NO_FENCE, database.rpartition("/")[2])
    assert asyncio.run(a_removed_node_writes(postgresql_server, database, monkeypatch))


def test_a_node_that_finds_itself_removed_stops_without_being_asked(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a") as (a,):
            failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
            a.watch(failed.set_result)
            await removed(postgresql_server, database, "a")
            told = str(await failed)
            assert "Another process has taken over" in told
            assert "this one was not heard of for too long, so it stopped" in told
            await membership_of(a).prove()
            assert not membership_of(a).is_sure

    play(scenario)


@pytest.mark.parametrize(
    ("beats", "told"),
    [(True, "has lost the last commits, and that this node joined"), (False, "has lost 2 commits that were acknowl")],
    ids=["it beats", "it commits"],
)
def test_a_node_that_the_promoted_standby_has_never_seen_is_told_so(
    postgresql_server: Server, database: str, monkeypatch: pytest.MonkeyPatch, *, beats: bool, told: str
) -> None:
    async def no_beat(self: Beating) -> None:
        """The thread does not tell: the commit has to find out."""

    async def scenario() -> None:
        if not beats:
            monkeypatch.setattr(Beating, "_beat", no_beat)
        async with joined(database, "a") as (a,):
            failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
            a.watch(failed.set_result)
            await a.claim("s")
            for number in range(2):
                await a.submit(unit_with(task(f"t{number}")))
            await asked(
                postgresql_server,
                database,
                "WITH host AS (DELETE FROM whisperer.host), writer AS (DELETE FROM whisperer.writer) "
                "DELETE FROM whisperer.placement",
            )
            if not beats:
                with pytest.raises(StoreLostError):
                    await a.submit(unit_with(task("late")))
            words = str(await failed)
            assert told in words
            assert "a standby that was behind took over, or a backup was restored" in words
            assert "synchronous_standby_names" in words

    play(scenario)


def defined(session_id: str, definition: AgentDefinition) -> Unit:
    """A session with an agent that has something to do."""
    unit = made(session_id)
    unit.insert_agent(replace(agent("ann", session_id), definition=definition))
    unit.insert_task(replace(task(f"t-{session_id}"), session_id=session_id))
    return unit


def test_sessions_whose_agents_run_programs_go_where_these_are_held_best(
    postgresql_server: Server, database: str
) -> None:
    definitions = {each.name: AgentDefinition(tools=("send_mail", each.name)) for each in COMMAND_TOOLS}
    definitions["talk"] = AgentDefinition(prompt='Never use "run_command".', tools=("send_mail",))

    async def scenario() -> None:
        async with joined(database, "a") as (a,):
            b = await join(database, card("b", strength=1), patience_seconds=10)
            c = await join(database, card("c", strength=3), patience_seconds=10)
            program = await join(database, card("p", serves=False), patience_seconds=10)
            try:
                for name, definition in definitions.items():
                    await a.claim(name)
                    await a.submit(defined(name, definition))
                await removed(postgresql_server, database, "a")
                assert await b.take(9) == ["talk"]
                with pytest.raises(
                    SessionElsewhereError,
                    match=r"run programs, which the sandbox of the node 'b' .* the node 'c' at",
                ) as told:
                    await b.claim("run_command")
                assert told.value.data == {"node": "c", "address": "http://c:1"}
                assert await program.claim("run_command"), "a program has its own session, and its own sandbox"
                await program.release("run_command")
                await membership_of(b).drain("c")
                assert sorted(await b.take(9)) == ["run_command", "run_python"], "nobody is left who holds them better"
            finally:
                for store in (b, c, program):
                    await store.close()

    play(scenario)


def test_a_session_is_moved_where_its_programs_are_held_less_if_somebody_says_so(
    postgresql_server: Server, database: str
) -> None:
    async def scenario() -> None:
        async with joined(database, "b") as (b,):
            c = await join(database, card("c", strength=3), patience_seconds=10)
            try:
                await c.claim("s")
                await c.submit(defined("s", AgentDefinition(tools=("run_python",))))
                await asked(postgresql_server, database, _MOVING_TO_B)
                await c.release("s")
                assert await b.take(1) == ["s"]
            finally:
                await c.close()

    play(scenario)


def test_a_session_that_is_let_go_before_its_last_commit_is_not_written_to(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(self: PostgresqlStore, session_id: str) -> None:
        assert self.placing is not None
        await self.placing.release(session_id)

    async def scenario() -> None:
        async with joined(database, "a") as (a,):
            await a.claim("s")
            in_time = a.submit(unit_with(task("t1")))
            await a.release("s")
            await in_time
            await a.claim("s")
            monkeypatch.setattr(PostgresqlStore, "release", at_once)
            await a.release("s")
            with pytest.raises(StoreRefusedError, match="another process has taken over"):
                await a.submit(unit_with(task("t2")))

    play(scenario)


def test_what_is_done_in_a_session_that_was_not_claimed_is_refused_alone(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a") as (a,):
            await a.claim("mine")
            results = await asyncio.gather(a.submit(made("mine")), a.submit(made("free")), return_exceptions=True)
            assert [type(each) for each in results] == [type(None), StoreRefusedError]

    play(scenario)


def test_of_two_who_make_a_session_one_does(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as stores:
            claims = await asyncio.gather(*(each.claim("new") for each in stores), return_exceptions=True)
            assert sorted(map(type, claims), key=str) == sorted([bool, SessionElsewhereError], key=str)
            winner = stores[claims.index(True)]
            await winner.submit(made("new"))
            with pytest.raises(StoreRefusedError):
                await winner.submit(made("new"))

    play(scenario)


def test_a_node_reads_what_another_has_told_in_a_shape_of_its_own(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            await a.claim("s")
            await b.claim("free")
            await asyncio.gather(a.submit(a_row_in_every_table("s")), b.submit(a_row_in_every_table("free")))
            for store in (a, b):
                for session_id in ("s", "free"):
                    assert await store.notifications(session_id, after=0, limit=9)

    play(scenario)


def test_sessions_with_work_of_a_node_that_is_gone_are_taken_in_fair_shares(
    postgresql_server: Server, database: str
) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b", "c") as (a, b, c):
            for number in range(5):
                await a.claim(f"s{number}")
                unit = made(f"s{number}")
                if number < 4:
                    unit.insert_task(replace(task(f"t{number}"), session_id=f"s{number}"))
                await a.submit(unit)
            await removed(postgresql_server, database, "a")
            shares = await asyncio.gather(b.take(2), c.take(2))
            assert sorted(shares[0] + shares[1]) == ["s0", "s1", "s2", "s3"]
            assert [len(each) for each in shares] == [2, 2]
            assert await b.take(9) == []
            assert await b.claim("s4")

    play(scenario)


def test_a_node_whose_clock_is_ten_minutes_off_goes_by_the_database(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - 600)
    monkeypatch.setattr(SystemClock, "now", lambda: right() - 600)

    async def scenario() -> None:
        async with AsyncAgentSessionManager(
            store=database, session_id="s", model_factory=lambda _: FunctionModel(lambda _: "done"), templates=()
        ) as manager:
            await manager.create_agent("ann")
            (agent,) = manager.active_sessions.values()
            assert abs(agent.record.created_at - right()) < 60

    play(scenario)


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "cut off"])
def test_whoever_has_a_session_next_knows_whether_its_node_was_cut_off(
    postgresql_server: Server, database: str, *, has_ended: bool
) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            await a.claim("s")
            await a.submit(unit_with(task("t1")))
            await removed(postgresql_server, database, "a", has_ended=has_ended)
            await b.claim("s")
            assert (await b.load("s")).was_cut_off is not has_ended
            await b.release("s")
            await b.claim("s")
            assert not (await b.load("s")).was_cut_off

    play(scenario)


def test_a_node_that_takes_the_place_of_a_former_one_in_its_folder_has_its_sessions_at_once(
    database: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        former = await join(database, card("a"), folder=tmp_path, patience_seconds=10)
        await former.claim("s")
        former.abandon()
        async with joined(database, "a", folder=tmp_path) as (a,):
            assert await a.claim("s")

    play(scenario)


def test_two_nodes_cannot_have_one_name(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a"):
            with pytest.raises(StoreInUseError, match=r"There is a node 'a' already, at http://a:1. Stop it, or give"):
                await join(database, card("a"), patience_seconds=10)

    play(scenario)


def test_a_node_of_an_older_version_than_the_cluster_takes_is_refused(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        await asked(postgresql_server, database, "UPDATE whisperer.cluster SET min_version='0.2'")
        with pytest.raises(StoreVersionError, match="Upgrade AI Whisperer here; nothing was changed"):
            await join(database, card("a"), patience_seconds=10)
        assert await asked(postgresql_server, database, "SELECT name FROM whisperer.host") == []

    play(scenario)


def test_a_node_that_is_drained_takes_no_session_and_names_another(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            status = await membership_of(b).drain("a")
            assert [(each.name, each.state, each.is_this) for each in status.nodes] == [
                ("a", NodeState.DRAINING, False),
                ("b", NodeState.JOINED, True),
            ]
            with pytest.raises(SessionElsewhereError, match=r"is being drained and does not .* ask the node 'b' at"):
                await a.claim("s")
            with pytest.raises(UnknownNodeError, match=r"There is no node 'x'. Nodes: 'a', 'b'"):
                await membership_of(b).drain("x")
            with pytest.raises(StateError, match=r"'b' is the last that takes sessions.*nothing was changed"):
                await membership_of(b).drain("b")
            assert (await membership_of(b).status()).nodes[1].state is NodeState.JOINED
            with pytest.raises(StateError, match="takes no sessions: it is being drained"):
                await membership_of(b).move("s", "a", patience_seconds=1)

    play(scenario)


def test_of_two_nodes_that_are_drained_at_the_same_time_the_last_is_refused(
    postgresql_server: Server, database: str
) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type='Lock' AND query LIKE '%drain_host%'"

    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            first = await connect(database, name="drains a, and has not committed it yet")
            async with first.transaction():
                assert await first.fetchval(queries.DRAIN, *("a", False)) == Draining.BEGUN
                second = asyncio.create_task(membership_of(a).drain("b"))
                while not await asked(postgresql_server, database, waiting):
                    assert not second.done()
            with pytest.raises(StateError, match=r"'b' is the last that takes sessions.*nothing was changed"):
                await second
            await first.close()
            states = {each.name: each.state for each in (await membership_of(b).status()).nodes}
            assert states == {"a": NodeState.DRAINING, "b": NodeState.JOINED}
            forced = await membership_of(a).drain("b", force=True)
            assert {each.state for each in forced.nodes} == {NodeState.DRAINING}

    play(scenario)


def test_the_status_is_told_over_a_connection_that_was_lost(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a") as (a,):
            ending = (
                "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name LIKE '% asking'"
            )
            assert (await membership_of(a).status()).waiting == 0
            await asked(postgresql_server, database, ending)
            assert [each.name for each in (await membership_of(a).status()).nodes] == ["a"]

    play(scenario)


def test_a_session_on_its_way_goes_to_the_node_that_is_named_and_to_no_other(
    postgresql_server: Server, database: str
) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b", "c") as (a, b, c):
            await a.claim("s")
            moving = asyncio.create_task(membership_of(c).move("s", "b", patience_seconds=30))
            asking = "SELECT 1 FROM whisperer.placement WHERE target IS NOT NULL"
            while not await asked(postgresql_server, database, asking):
                pass
            await a.release("s")
            assert await c.take(9) == []
            assert await b.take(9) == ["s"]
            assert (await moving).node == "b"

    play(scenario)


def test_a_session_on_its_way_to_a_node_that_is_drained_may_go_to_any_other(
    postgresql_server: Server, database: str
) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b", "c") as (a, b, c):
            await a.claim("s")
            await asked(postgresql_server, database, _MOVING_TO_B)
            await membership_of(c).drain("b")
            await asked(postgresql_server, database, "UPDATE whisperer.placement SET wanted=true")
            await a.release("s")
            assert await b.take(9) == []
            assert await c.claim("s")

    play(scenario)


def test_to_move_a_session_to_where_it_is_keeps_it_there(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            await a.claim("s")
            await asked(postgresql_server, database, _MOVING_TO_B)
            assert (await membership_of(b).move("s", "a", patience_seconds=0)).node == "a"
            assert await asked(postgresql_server, database, "SELECT target FROM whisperer.placement") == [(None,)]

    play(scenario)


def test_a_session_that_is_pinned_is_not_let_go(database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            await a.claim("s")
            with a.pinned("s"):
                await a.release("s")
                with pytest.raises(SessionElsewhereError):
                    await b.claim("s")
            assert await a.is_ours("s")
            await a.release("s")
            assert not await a.is_ours("s")
            assert await b.claim("s")

    play(scenario)


def test_a_copy_of_a_data_folder_does_not_end_the_node_that_has_the_original(database: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        original, copy = tmp_path / "original", tmp_path / "copy"
        original.mkdir()
        async with joined(database, "a", folder=original) as (a,):
            copy.mkdir()
            (copy / "node").write_bytes((original / "node").read_bytes())
            async with joined(database, "b", folder=copy):
                assert [each.name for each in (await membership_of(a).status()).nodes] == ["a", "b"]

    play(scenario)


def test_a_deletion_that_the_end_of_a_node_cut_short_is_finished_by_whoever_claims_the_session(
    postgresql_server: Server, database: str
) -> None:
    async def scenario() -> None:
        async with joined(database, "a", "b") as (a, b):
            await a.claim("s")
            await a.submit(a_row_in_every_table("s"))
            unit = Unit()
            unit.begin_deletion("s")
            await a.submit(unit)
            await b.finish_deletions()
            assert await b.tasks("s", limit=9), "another node's deletion is its own business"
            await removed(postgresql_server, database, "a")
            assert await b.claim("s")
            assert await b.tasks("s", limit=9) == []
            assert await asked(postgresql_server, database, "SELECT session_id FROM whisperer.deletion") == []

    play(scenario)


def test_whoever_has_the_database_alone_keeps_nodes_out_and_they_keep_it_out(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ai_whisperer.store.postgresql import lane

    monkeypatch.setattr(lane, "_LOCK_SECONDS", 0.1)

    async def scenario() -> None:
        alone = await PostgresqlStore.open(database)
        with pytest.raises(StoreInUseError, match="has the database at"):
            await join(database, card("a"), patience_seconds=10)
        await alone.close()
        async with joined(database, "a"):
            with pytest.raises(StoreInUseError, match="has the database at"):
                await PostgresqlStore.open(database)

    play(scenario)


def test_a_database_that_stalls_condemns_nobody(postgresql_server: Server, database: str) -> None:
    if not postgresql_server.is_ours:
        pytest.skip("the server is another's, and is not stalled")

    async def scenario() -> None:
        async with joined(database, "a", "b") as stores:
            members = [membership_of(each) for each in stores]
            for number, store in enumerate(stores):
                await store.claim(f"s{number}")
            with postgresql_server.stalled():
                while any(each.figures()["node_beats_missed"][1] < 2 for each in members):  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.05)
                assert not any(each.is_sure for each in members)
            for number, (store, member) in enumerate(zip(stores, members, strict=True)):
                await store.submit(made(f"s{number}"))
                await member.prove()
                assert [each.name for each in (await member.status()).nodes] == ["a", "b"]
                assert member.figures()["node_takeovers"][1] == 0

    play(scenario)


def test_a_node_that_leaves_lets_its_sessions_go(postgresql_server: Server, database: str) -> None:
    async def scenario() -> None:
        async with joined(database, "a") as (a,):
            await a.claim("s")
            await a.submit(made("s"))
        assert await asked(postgresql_server, database, "SELECT id FROM whisperer.host") == []
        assert await asked(postgresql_server, database, "SELECT id FROM whisperer.writer") == []
        rows = await asked(postgresql_server, database, "SELECT session_id, writer_id, wanted FROM whisperer.placement")
        assert rows == [("s", None, False)]

    play(scenario)
