"""Nodes that die, freeze, are drained, and give sessions to each other: nothing is lost and nothing is done twice."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from ai_whisperer import AsyncAgentSessionManager, export_session
from ai_whisperer.client import Client
from ai_whisperer.client.events import EventStream
from ai_whisperer.cluster.joining import join
from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.domain.sessions import SessionSummary
from ai_whisperer.errors import DuplicateIdError, NoClusterError, SessionElsewhereError, StoreError, UnknownSessionError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.serving import RunningServer, running
from ai_whisperer.settings import Settings
from ai_whisperer.store.postgresql.store import PostgresqlStore
from tests.acceptance.command_stage import Ran, run
from tests.cluster.stage import TOKEN, Node, eventually, evidence, nodes, set_to_work
from tests.postgresql import Server

SESSIONS = 4


async def all_over(server: Server, database: str, *sessions: str) -> bool:
    return all([(await evidence(server, database, each)).is_over for each in sessions])


async def under_way(server: Server, database: str, *sessions: str) -> bool:
    """Whether each has done some of its work, and not all."""
    found = [await evidence(server, database, each) for each in sessions]
    return all(each.mails and not each.is_over for each in found)


def test_sessions_of_a_node_that_is_killed_go_on_at_the_others(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    names = [f"s{number}" for number in range(SESSIONS)]

    async def scenario(a: Node, b: Node, c: Node) -> None:
        for name in names:
            await set_to_work(a, name)
        async with a.client() as client:
            await client.create_session("idle")
        await eventually(partial(under_way, postgresql_server, database, *names))
        a.kill()
        await eventually(partial(all_over, postgresql_server, database, *names))
        holders = set()
        for name in names:
            found = await evidence(postgresql_server, database, name)
            found.check()
            assert len({epoch for _, epoch in found.log}) > 1, "it was over before the node was killed"
            holders.add(found.holder)
        assert holders <= {"b", "c"}
        assert (await evidence(postgresql_server, database, "idle")).holder is None
        async with b.client("idle") as client:
            assert await client.list_agents() == []
        assert (await evidence(postgresql_server, database, "idle")).holder == "b"
        async with c.client() as client:
            assert [each.name for each in (await client.cluster_status()).nodes] == ["b", "c"]

    with nodes(database, tmp_path, "a", "b", "c") as found:
        asyncio.run(scenario(*found))


def test_a_node_that_was_frozen_writes_nothing_and_stops_with_a_sentence(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario(a: Node, b: Node) -> None:
        await set_to_work(a, "s")
        async with a.client("s") as client, b.client("s") as other:
            await eventually(partial(under_way, postgresql_server, database, "s"))
            a.freeze()
            reading = asyncio.create_task(client.list_agents())  # is answered, if at all, when the node is thawed
            await eventually(other.list_agents)
            a.thaw()
            outcome = (await asyncio.gather(reading, return_exceptions=True))[0]
            assert isinstance(outcome, Exception), "it told what it had in memory"
        ended = await asyncio.to_thread(a.process.ended)
        assert ended.code == 1
        assert "this one was not heard of for too long, so it stopped. Nothing that was accepted is lost" in ended.err
        await eventually(partial(all_over, postgresql_server, database, "s"))
        (await evidence(postgresql_server, database, "s")).check()

    with nodes(database, tmp_path, "a", "b") as (a, b):
        asyncio.run(scenario(a, b))


async def told_of(stream: EventStream, task_id: str) -> list[int]:
    """The numbers of what is told until that task has ended."""
    seqs = []
    async for note in stream:
        seqs.append(note.seq)
        if note.name == "async.task.completed" and note.params["taskId"] == task_id:
            break
    return seqs


def test_clients_of_a_node_that_was_frozen_go_on_at_the_next_address(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario(a: Node, b: Node) -> None:
        await set_to_work(a, "s", tasks=0)
        several = Client(f"{a.url},{b.url}", TOKEN, session_id="s", reconnect_seconds=30)
        async with several, b.client("s") as other, b.client("t") as through_b:
            await several.create_session("t")
            await through_b.create_agent("bob")  # b passes this on to a
            stream = several.events(after=0)
            following = asyncio.create_task(told_of(stream, "t0"))
            a.freeze()
            reading = asyncio.create_task(several.list_agents())
            sending = asyncio.create_task(several.send_task("ann", "go", task_id="t0"))
            await eventually(other.list_agents)
            a.thaw()
            assert [each.agent_id for each in await reading] == ["ann"]
            assert (await sending).id == "t0"
            seqs = await following
            assert seqs == list(range(1, len(seqs) + 1)), "something is missing, or came twice"
            await stream.close()
            assert [each.agent_id for each in await through_b.list_agents()] == ["bob"]
        ended = await asyncio.to_thread(a.process.ended)
        assert ended.code == 1
        place = database.partition("://")[2].rpartition("@")[2].partition("/")[0]
        assert place not in ended.err.partition("the store has failed")[2], "the address of the database is told"

    with nodes(database, tmp_path, "a", "b") as (a, b):
        asyncio.run(scenario(a, b))


def test_a_node_that_is_drained_gives_its_sessions_away_and_no_task_counts_as_crashed(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario(a: Node, b: Node) -> None:
        for name in ("s0", "s1"):
            await set_to_work(a, name, tasks=4)
        await eventually(partial(under_way, postgresql_server, database, "s0", "s1"))
        async with b.client() as client:
            assert (await client.drain_node("a")).nodes[0].state is NodeState.DRAINING

        async def is_empty() -> bool:
            async with b.client() as client:
                return not next(each for each in (await client.cluster_status()).nodes if each.name == "a").sessions

        await eventually(is_empty)
        async with a.client("s0") as client:
            assert [each.agent_id for each in await client.list_agents()] == ["ann"]
        await eventually(partial(all_over, postgresql_server, database, "s0", "s1"))
        for name in ("s0", "s1"):
            found = await evidence(postgresql_server, database, name)
            found.check(tasks=4)
            assert found.holder == "b"
            async with b.client(name) as client:
                assert {task.attempts for task in await client.list_tasks()} <= {0, 1}
        a.process.signal(signal.SIGTERM)
        assert (await asyncio.to_thread(a.process.ended)).code == 0

    with nodes(database, tmp_path, "a", "b") as (a, b):
        asyncio.run(scenario(a, b))


def test_nodes_move_a_session_and_make_it_once(postgresql_server: Server, database: str, tmp_path: Path) -> None:
    async def scenario(a: Node, b: Node) -> None:
        async with a.client("s") as of_a, b.client("s") as of_b:
            made = await asyncio.gather(of_a.create_session("s"), of_b.create_session("s"), return_exceptions=True)
            assert sum(isinstance(each, SessionSummary) for each in made) == 1
            assert any(isinstance(each, DuplicateIdError | SessionElsewhereError) for each in made)
            first, second = (of_a, of_b) if isinstance(made[0], SessionSummary) else (of_b, of_a)
            here, there = (a, b) if first is of_a else (b, a)
            await first.create_agent("ann")
            await first.send_task("ann", "work 0", task_id="t0")
            await eventually(partial(under_way, postgresql_server, database, "s"))
            moved = await asyncio.to_thread(
                run, "cluster", "move", "s", there.name, "--url", here.url, "--token", TOKEN, "--json"
            )
            assert moved.json["node"] == there.name, moved
            assert (await second.wait_task("t0")).state == "completed"
            (await evidence(postgresql_server, database, "s")).check(tasks=1)
            with pytest.raises(UnknownSessionError):
                await first.move_session("none", there.name)
            status = await first.cluster_status()
            assert [(each.name, each.state, each.has_same_settings) for each in status.nodes] == [
                ("a", NodeState.JOINED, True),
                ("b", NodeState.JOINED, True),
            ]
            told_of = await asyncio.to_thread(run, "cluster", "status", "--url", here.url, "--token", TOKEN)
            assert f"{here.name} *" in told_of.out

    with nodes(database, tmp_path, "a", "b") as (a, b):
        asyncio.run(scenario(a, b))


def test_sessions_go_where_the_tags_are_that_they_need(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def commanded(node: Node, *words: str) -> Ran:
        return await asyncio.to_thread(run, *words, "--url", node.url, "--token", TOKEN)

    async def is_at(session_id: str, name: str) -> bool:
        return (await evidence(postgresql_server, database, session_id)).holder == name

    async def scenario(a: Node, b: Node) -> None:
        refused = await commanded(a, "sessions", "create", "far", "--need", "gpus")
        assert refused.code != 0
        assert "no node that takes sessions has the tag 'gpus' ('a' has no tags; 'b' has the tag 'gpu')" in refused.err
        assert "Did you mean 'gpu'?" in refused.err
        made = await commanded(a, "sessions", "create", "trained", "--need", "gpu", "--json")
        assert made.json["needs"] == ["gpu"], made
        async with a.client("trained") as through_a:
            await through_a.create_agent("ann")
            await through_a.send_task("ann", "work 0", task_id="t0")
            assert (await through_a.wait_task("t0")).state == "completed"
        found = await evidence(postgresql_server, database, "trained")
        found.check(tasks=1)
        assert found.holder == "b"

        file = tmp_path / "trained.zip"
        await asyncio.to_thread(export_session, tmp_path, "trained", file, store=database)
        async with a.client("again") as through_a:
            assert (await through_a.import_session(str(file), session_id="again")).rows["task"] == 1
            assert [each.agent_id for each in await through_a.list_agents()] == ["ann"]
            assert await is_at("again", "b")
            await through_a.delete_session("again")

        async with a.client("s") as through_a:
            await through_a.create_session("s")
            await through_a.create_agent("ann")
            assert await is_at("s", "a")
            assert "needs the tag 'gpu'" in (await commanded(a, "sessions", "needs", "s", "gpu")).out
            await eventually(partial(is_at, "s", "b"))
            assert [each.agent_id for each in await through_a.list_agents()] == ["ann"]
            moved = await commanded(a, "cluster", "move", "s", "a")
            assert moved.code != 0
            assert "the node 'a' has no tags; nothing was changed" in moved.err
            assert {each.id: each.needs for each in await through_a.list_sessions() if each.needs} == {
                "s": ("gpu",),
                "trained": ("gpu",),
            }
            assert (await through_a.set_needs([])).needs == ()
            assert (await commanded(b, "cluster", "move", "s", "a")).code == 0

        status = (await commanded(a, "cluster", "status")).out.splitlines()
        assert "TAGS" in status[0]
        assert "gpu" in status[2]
        kept = await commanded(a, "cluster", "drain", "b")
        assert kept.code != 0
        assert "need tags that no other node has" in kept.err
        assert (await commanded(a, "cluster", "drain", "b", "--force")).code == 0
        last = await commanded(b, "cluster", "drain", "a")
        assert last.code != 0
        assert "The node 'a' is the last that takes sessions" in last.err

    with nodes(database, tmp_path, "a", "b", tags={"b": ["gpu"]}) as (a, b):
        asyncio.run(scenario(a, b))


@asynccontextmanager
async def two_nodes(database: str, folder: Path) -> AsyncIterator[tuple[RunningServer, Client, PostgresqlStore]]:
    """A server in this process, a client of it, and another node that does nothing by itself."""
    settings = Settings(data=folder, store=database, node="a", port=0, model="scripted")
    other = await join(database, NodeCard(name="b", version="0.1.0"), patience_seconds=10)
    try:
        async with (
            running(settings, model_factory=lambda _: FunctionModel(answer)) as server,
            Client(server.address.url, server.address.token) as client,
        ):
            yield server, client, other
    finally:
        await other.close()


def test_what_is_read_for_a_client_keeps_the_connections_that_read(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    reading = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE '% reading' ORDER BY pid"
    heard: list[dict[str, Any]] = []

    async def connections() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await postgresql_server._run(reading, database.rpartition("/")[2])]

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        async with two_nodes(database, tmp_path) as (_, client, _other):
            await client.create_agent("ann")
            await client.wait_task(await client.send_task("ann", "x"))
            before = await connections()
            for _ in range(3):
                assert await client.list_tasks()
                assert await client.usage()
                assert await client.notifications(after=0)
            assert set(before) <= set(await connections())
            gc.collect()

    asyncio.run(scenario())
    assert heard == []


def test_a_session_that_another_node_has_taken_is_closed_here_and_the_others_continue(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    name = database.rpartition("/")[2]

    async def scenario() -> None:
        async with two_nodes(database, tmp_path) as (server, client, _):
            await client.create_session("lost")
            lost = client.session("lost")
            for each in (client, lost):
                await each.create_agent("ann")
            await postgresql_server._run(
                "UPDATE whisperer.placement SET writer_id=host.id, epoch=epoch+1 FROM whisperer.host "
                "WHERE host.name='b' AND session_id='lost'",
                name,
            )
            with pytest.raises(StoreError, match="another process has taken over"):
                await lost.send_task("ann", "go")

            async def is_forgotten() -> bool:
                return [each.session_id for each in server._host.open_sessions] == ["default"]

            await eventually(is_forgotten)
            with pytest.raises(SessionElsewhereError, match="The node 'b' has the session 'lost'"):
                await lost.list_agents()
            assert await client.run_task("ann", "go") == "done"
            assert server.trouble() is None

    asyncio.run(scenario())


def test_a_session_with_work_is_deleted_and_no_other_node_takes_it_meanwhile(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with two_nodes(database, tmp_path) as (server, client, b):
            await client.create_session("busy")
            busy = client.session("busy")
            await busy.create_agent("ann")
            await busy.create_schedule("ann", interval_seconds=3600, prompt="go")
            store = server._host._store
            agents_in, taken = store.agents_in, []

            async def while_it_is_closed(session_id: str) -> int:
                taken.extend(await b.take(9))
                return await agents_in(session_id)

            monkeypatch.setattr(store, "agents_in", while_it_is_closed)
            assert (await client.delete_session("busy")).id == "busy"
            assert taken == []
            assert await b.claim("busy"), "it is let go when it is deleted"

    asyncio.run(scenario())


def test_a_session_that_could_not_be_taken_up_is_tried_again_though_nobody_asks(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_claimed = SessionHost.open_claimed
    failures: list[str] = []

    async def fails_at_first(self: SessionHost, session_id: str) -> None:
        if len(failures) < 2:
            failures.append(session_id)
            raise StoreError("The database does not answer. Try again.")
        await open_claimed(self, session_id)

    async def scenario() -> None:
        async with two_nodes(database, tmp_path) as (server, client, _):
            await client.create_session("busy")
            busy = client.session("busy")
            await busy.create_agent("ann")
            await busy.create_schedule("ann", interval_seconds=3600, prompt="go")
            monkeypatch.setattr(SessionHost, "open_claimed", fails_at_first)
            await server._host.let_go("busy", grace_seconds=1)  # it has work, so that this node takes it again

            async def is_open() -> bool:
                return any(each.session_id == "busy" for each in server._host.open_sessions)

            await eventually(is_open)
            assert failures == ["busy", "busy"]

    asyncio.run(scenario())


def answer(_: ModelRequest) -> str:
    return "done"


def test_two_programs_have_two_sessions_of_a_database_and_not_one(database: str) -> None:
    def opened(session_id: str) -> AsyncAgentSessionManager:
        return AsyncAgentSessionManager(
            store=database, session_id=session_id, model_factory=lambda _: FunctionModel(answer), templates=()
        )

    async def scenario() -> None:
        async with opened("one") as one:
            async with opened("two") as two:
                for manager in (one, two):
                    await manager.create_agent("ann")
                    assert await manager.run_task("ann", "go") == "done"
            with pytest.raises(SessionElsewhereError, match=r"The node '.*' has the session 'one'. Ask"):
                await opened("one").open()
        async with opened("one") as again:
            assert sorted(again.active_sessions) == ["ann"]

    asyncio.run(scenario())


def test_with_a_data_folder_it_is_told_how_to_get_a_cluster(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(Settings(data=tmp_path, port=0, model="scripted")) as server:
            address = server.address
            ran = await asyncio.to_thread(
                run, "cluster", "status", "--url", address.url, "--token", address.token, "--json"
            )
            assert ran.error["code"] == NoClusterError.code
            assert "whisperer serve --store ADDRESS" in json.loads(ran.err)["error"]["message"]

    asyncio.run(scenario())
