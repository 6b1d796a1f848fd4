"""Any node takes any client: requests and subscriptions for sessions of other nodes, and what becomes of them there."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ai_whisperer.client import Client
from ai_whisperer.client.link import Incoming
from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import (
    ConnectionLostError,
    DuplicateIdError,
    InvalidInputError,
    StoreError,
    UnknownAgentError,
    UnknownSessionError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.protocol.subscriptions import Subscribed
from ai_whisperer.server.gateway import detour
from ai_whisperer.server.gateway.far_log import FarLog
from ai_whisperer.server.gateway.gateway import Gateway
from ai_whisperer.server.gateway.link import Channel
from ai_whisperer.server.serving import RunningServer, running
from ai_whisperer.settings import Settings
from tests.cluster.stage import TOKEN, Node, eventually, evidence, nodes, set_to_work
from tests.postgresql import Server

ANSWER = "one word after the other, " * 20 + "and no more"
FOLLOWERS = 20
TASKS = 20
COMPLETED = "async.task.completed"


class Pair(NamedTuple):
    """Two servers in this process on one database, and a client of each. Session `s` is at the first."""

    a: RunningServer
    b: RunningServer
    of_a: Client
    of_b: Client

    @property
    def holders(self) -> list[bool]:
        """Whether each of them has session `s` open."""
        return [any(each.session_id == "s" for each in server._host.open_sessions) for server in (self.a, self.b)]


def answer(_: ModelRequest) -> str:
    return ANSWER


@asynccontextmanager
async def a_pair(database: str, folder: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        servers, clients = [], []
        for name in ("a", "b"):
            settings = Settings(
                data=folder / name, store=database, node=name, port=0, model="scripted", token=TOKEN, session=name
            )
            server = await stack.enter_async_context(running(settings, model_factory=lambda _: FunctionModel(answer)))
            servers.append(server)
            clients.append(await stack.enter_async_context(Client(server.address.url, TOKEN, session_id="s")))
        await clients[0].create_session("s")
        await clients[0].create_agent("ann")
        yield Pair(servers[0], servers[1], clients[0], clients[1])


def in_a_pair(database: str, folder: Path, scenario: Callable[[Pair], Awaitable[None]]) -> None:
    async def play() -> None:
        async with asyncio.timeout(60), a_pair(database, folder) as pair:
            await scenario(pair)

    asyncio.run(play())


async def counted(server: RunningServer, name: str) -> float:
    """A figure of `/metrics`."""
    url = f"{server.address.url}/metrics"
    asking = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
    told = await asyncio.to_thread(lambda: urllib.request.urlopen(asking).read().decode())  # noqa: S310
    found = re.search(rf"^whisperer_{name} (\S+)$", told, re.MULTILINE)
    assert found, told
    return float(found[1])


class Wire:
    """A WebSocket as any program has it: what is asked, answered and told, in the order of the wire."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.told: list[dict[str, Any]] = []

    async def call(self, method: str, **params: Any) -> Any:
        await self.send(method, **params)
        return await self.answer()

    async def send(self, method: str, **params: Any) -> None:
        await self._socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))

    async def answer(self) -> Any:
        while "id" not in (message := json.loads(await self._socket.recv())):
            self.told.append(message)
        return message

    async def until(self, is_last: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """All that was told up to the notification of which this is true."""
        while not self.told or not is_last(self.told[-1]):
            self.told.append(json.loads(await self._socket.recv()))
        return self.told


@asynccontextmanager
async def wire_to(server: RunningServer) -> AsyncIterator[Wire]:
    async with connect(f"{server.address.url.replace('http', 'ws')}/ws?token={TOKEN}") as socket:
        yield Wire(socket)


def is_completed(note: dict[str, Any]) -> bool:
    return bool(note["method"] == COMPLETED)


async def read_until(stream: AsyncIterator[Notification], name: str) -> list[Notification]:
    notes = []
    async for note in stream:
        notes.append(note)
        if note.name == name:
            break
    return notes


def test_requests_are_answered_by_the_node_that_has_the_session_as_they_would_be_there(
    database: str, tmp_path: Path
) -> None:
    async def scenario(pair: Pair) -> None:
        assert [each.agent_id for each in await pair.of_b.list_agents()] == ["ann"]
        assert await pair.of_b.run_task("ann", "go") == ANSWER
        await pair.of_b.create_agent("bob")
        sent = (pair.of_b.send_task("bob", f"task {number}", task_id=f"t{number}") for number in range(TASKS))
        given = await asyncio.gather(*sent)
        assert [each.arrival for each in given] == sorted(each.arrival for each in given), "they kept their order"
        assert {each.id for each in await pair.of_a.list_tasks("bob")} == {f"t{number}" for number in range(TASKS)}
        assert pair.holders == [True, False]
        assert await counted(pair.b, "node_requests_passed_on_total") > TASKS
        with pytest.raises(InvalidInputError, match="priority"):
            await pair.of_b.send_task("ann", "go", priority="soon")
        with pytest.raises(UnknownAgentError, match="Valid names: ann, bob"):
            await pair.of_b.send_task("nobody", "go")

    in_a_pair(database, tmp_path, scenario)


def test_a_session_elsewhere_is_made_once_and_deleted_and_made_again(database: str, tmp_path: Path) -> None:
    async def scenario(pair: Pair) -> None:
        with pytest.raises(UnknownSessionError):
            await pair.of_b.session("none").list_agents()
        with pytest.raises(DuplicateIdError):
            await pair.of_b.create_session("s")
        assert (await pair.of_b.delete_session("s")).agents == 1
        with pytest.raises(UnknownSessionError):
            await pair.of_a.list_agents()
        await pair.of_b.create_session("s")
        assert pair.holders == [False, False]
        assert await pair.of_b.list_agents() == await pair.of_a.list_agents() == []
        assert pair.holders == [False, True]

    in_a_pair(database, tmp_path, scenario)


def test_all_followers_of_a_far_session_get_all_of_it_once_and_cost_its_node_one_feed(
    database: str, tmp_path: Path
) -> None:
    async def scenario(pair: Pair) -> None:
        before = await counted(pair.a, "notifications_sent_total")
        streams = [pair.of_b.events(after=0) for _ in range(FOLLOWERS)]
        reading = [asyncio.create_task(read_until(stream, COMPLETED)) for stream in streams]
        await pair.of_b.run_task("ann", "go")
        seen = await asyncio.gather(*reading)
        last = seen[0][-1].seq
        log = await pair.of_a.notifications(limit=last)
        assert [note.seq for note in log] == list(range(1, last + 1))
        assert all(each == log for each in seen)
        assert await counted(pair.a, "notifications_sent_total") - before <= last
        assert await counted(pair.b, "node_logs_followed") == 1
        for stream in streams:
            await stream.close()

        async def is_over() -> bool:
            return await counted(pair.b, "node_logs_followed") == 0

        await eventually(is_over)

    in_a_pair(database, tmp_path, scenario)


def test_one_connection_follows_a_session_from_node_to_node_without_a_gap(database: str, tmp_path: Path) -> None:
    async def scenario(pair: Pair) -> None:
        async with wire_to(pair.b) as far, wire_to(pair.a) as near:
            for wire in (far, near):
                assert (await wire.call("events.subscribe", sessionId="s", after=0))["result"]["after"] == 0
            for node in ("b", "a", "b"):
                await pair.of_a.run_task("ann", "go")
                assert (await pair.of_a.move_session("s", node)).node == node
            await pair.of_b.create_agent("bob")
            await pair.of_b.run_task("bob", "go")
            last = (await pair.of_b.notifications(limit=1000))[-1].seq
            for wire in (far, near):
                told = await wire.until(lambda note: note["params"]["seq"] == last)
                assert [each["params"]["seq"] for each in told] == list(range(1, last + 1))

    in_a_pair(database, tmp_path, scenario)


def test_pieces_of_answers_and_the_guides_notifications_come_from_far_too(database: str, tmp_path: Path) -> None:
    async def scenario(pair: Pair) -> None:
        async with wire_to(pair.b) as follower, wire_to(pair.b) as watcher:
            sent = await follower.call("async.sendTask", sessionId="s", agentId="ann", prompt="go")
            assert sent["result"]["agentId"] == "ann"
            names = [each["method"] for each in await follower.until(is_completed)]
            assert names[0] == "async.task.queued"
            await watcher.call("events.subscribe", sessionId="s", deltas=True)
            await pair.of_b.run_task("ann", "go")
            pieces = [each for each in await watcher.until(is_completed) if not each["params"]["seq"]]
            assert "".join(each["params"]["text"] for each in pieces) == ANSWER
            ended = await watcher.call("events.unsubscribe", sessionId="s")
            assert ended["result"]["after"] == watcher.told[-1]["params"]["seq"]
            refused = await watcher.call("events.subscribe", sessionId="s", after=9999)
            assert "so nothing can come after 9999" in refused["error"]["message"]

    in_a_pair(database, tmp_path, scenario)


def break_links(server: RunningServer) -> None:
    for link in _gateway(server)._neighbours._links.values():
        link.drop()


def _gateway(server: RunningServer) -> Gateway:
    (found,) = (each for each in gc.get_objects() if type(each) is Gateway and each._logs._host is server._host)
    return found


def test_a_log_is_followed_by_its_numbers_when_the_link_breaks(database: str, tmp_path: Path) -> None:
    async def scenario(pair: Pair) -> None:
        async with wire_to(pair.b) as wire:
            await wire.call("events.subscribe", sessionId="s", after=0)
            await pair.of_b.run_task("ann", "go")
            for _ in range(3):
                break_links(pair.b)
                await pair.of_a.run_task("ann", "go")
            last = (await pair.of_a.notifications())[-1].seq
            told = await wire.until(lambda note: note["params"]["seq"] == last)
            assert [each["params"]["seq"] for each in told] == list(range(1, last + 1))
            await pair.of_a.delete_session("s")
            await pair.of_a.create_session("s")
            assert (await wire.until(lambda note: note["method"] == "session.closed"))[-2]["params"]["seq"] == last

    in_a_pair(database, tmp_path, scenario)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(1, id="as it is"),
        pytest.param(
            2, id="planted", marks=pytest.mark.planted("calls between nodes", name="repeat whatever was not answered")
        ),
    ],
)
def test_a_call_whose_answer_is_lost_between_nodes_is_repeated_only_under_an_id(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: int
) -> None:
    """With the planted bug a node repeats whatever was not answered, so that a mail without an id is given twice."""
    take, is_planted = Channel.take, given > 1
    lost: list[Incoming] = []

    def lose(channel: Channel, incoming: Incoming) -> None:
        if incoming.id and not lost:
            lost.append(incoming)
            channel._link.drop()
        else:
            take(channel, incoming)

    async def scenario(pair: Pair) -> None:
        async with wire_to(pair.b) as wire:
            mail = {"sessionId": "s", "to": "ann", "subject": "Hello", "body": "."}
            assert (await wire.call("mail.list", sessionId="s"))["result"] == {"mails": []}
            monkeypatch.setattr(Channel, "take", lose)
            if is_planted:
                monkeypatch.setattr(detour.Asked, "is_repeatable", True)
            told = await wire.call("mail.send", **mail)
            assert ("error" in told) is not is_planted
            if not is_planted:
                assert told["error"]["data"]["code"] == "connection_lost"
                assert "it is not known whether it took effect" in told["error"]["message"]
            assert len(await pair.of_a.mailbox("ann")) == given
            lost.clear()
            told = await wire.call("mail.send", **mail, mailId="once")
            assert told["result"]["mailId"] == "once"
            assert lost
            assert len(await pair.of_a.mailbox("ann")) == given + 1

    in_a_pair(database, tmp_path, scenario)


def test_requests_that_a_client_sends_without_waiting_keep_their_order_from_the_first_on(
    database: str, tmp_path: Path
) -> None:
    async def scenario(pair: Pair) -> None:
        async with wire_to(pair.b) as wire:
            await wire.send("async.createAgent", sessionId="s", agentId="bob")
            for number in range(TASKS):
                if number == TASKS // 2:
                    break_links(pair.b)
                await wire.send("async.sendTask", sessionId="s", agentId="bob", prompt="go", taskId=f"t{number}")
            await wire.send("mail.send", sessionId="s", to="bob", subject="Hello", body=".", mailId="m")
            answers = [await wire.answer() for _ in range(TASKS + 2)]
            assert [each.get("error") for each in answers] == [None] * (TASKS + 2)
            queued = [note for note in await pair.of_a.notifications() if note.name == "async.task.queued"]
            assert [note.params["taskId"] for note in queued][:TASKS] == [f"t{number}" for number in range(TASKS)]
            last = (await pair.of_a.notifications())[-1].seq
            told = await wire.until(lambda note: note["params"]["seq"] >= last)
            seen = [each["params"]["seq"] for each in told]
            assert seen == list(range(seen[0], seen[-1] + 1)), "the client follows once, and misses nothing"

    in_a_pair(database, tmp_path, scenario)


def test_who_follows_a_far_session_that_is_deleted_while_it_reads_the_store_is_told_and_reads_no_more(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = FarLog.stored_after
    deleting: Callable[[], Awaitable[object]]

    async def counted_read(log: FarLog, cursor: int) -> list[Notification]:
        nonlocal reads
        reads += 1
        if reads == 1:
            await deleting()
        return await read(log, cursor)

    async def scenario(pair: Pair) -> None:
        nonlocal deleting
        await pair.of_a.run_task("ann", "go")
        deleting = partial(pair.of_a.delete_session, "s")
        monkeypatch.setattr(FarLog, "stored_after", counted_read)
        async with wire_to(pair.b) as wire:
            await wire.call("events.subscribe", sessionId="s", after=0)
            assert (await wire.until(lambda note: note["method"] == "session.closed"))[-1]
            assert reads < 10

    in_a_pair(database, tmp_path, scenario)


def test_nobody_reads_the_log_of_another_who_has_made_a_session_with_the_same_id(database: str, tmp_path: Path) -> None:
    async def scenario(pair: Pair) -> None:
        store = pair.b._host._store
        told = Subscribed(session_id="s", after=0, last_seq=1, created_at=(await store.session("s")).created_at)  # type: ignore[union-attr]
        for principal, created_at, is_told in (("local", 0.0, True), ("local", 1.0, False), ("other", 0.0, False)):
            log = FarLog(
                store,
                replace(told, created_at=told.created_at + created_at),
                principal=principal,
                on_deltas=lambda _: None,
                on_unused=lambda _: None,
            )
            assert bool(await log.stored_after(0)) is is_told

    in_a_pair(database, tmp_path, scenario)


def test_a_client_whose_log_is_not_found_any_more_is_dropped_with_the_reason(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nowhere(*_: object, **__: object) -> None:
        raise StoreError("The database does not answer.")

    async def dropped(pair: Pair) -> None:
        async with wire_to(pair.a) as wire:
            await wire.call("events.subscribe", sessionId="s")
            monkeypatch.setattr(detour.Detour, "_asked", nowhere)
            await pair.a._host.let_go("s", grace_seconds=0)
            with pytest.raises(ConnectionClosed, match=r"1011.*store"):
                await wire.until(lambda note: note["method"] == "session.closed")

    in_a_pair(database, tmp_path, dropped)


def test_only_nodes_of_the_cluster_come_in_and_only_to_the_one_they_mean(database: str, tmp_path: Path) -> None:
    async def scenario(pair: Pair) -> None:
        at = f"{pair.a.address.url.replace('http', 'ws')}/node?to="
        secret = pair.a._host.membership.secret
        for shown in (None, {"Authorization": f"Bearer {TOKEN}"}):
            with pytest.raises(InvalidStatus, match="401"):
                await connect(f"{at}a", additional_headers=shown)
        known = {"Authorization": f"Bearer {secret}"}
        with pytest.raises(InvalidStatus) as told:
            await connect(f"{at}b", additional_headers=known)
        assert b"This is the node 'a', not 'b'" in bytes(told.value.response.body)
        for nonsense in (b"", b"\x09\x00\x00\x00\x01", b"\x01\x00\x00\x00\x01{}"):
            async with connect(f"{at}a", additional_headers=known) as socket:
                await socket.send(nonsense)
                with pytest.raises(ConnectionClosed, match="1003"):
                    await socket.recv()
        assert await pair.of_b.run_task("ann", "go") == ANSWER

    in_a_pair(database, tmp_path, scenario)


def test_after_a_freeze_what_may_be_repeated_is_answered_elsewhere_and_the_rest_says_that_it_is_not_known(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario(a: Node, b: Node) -> None:
        await set_to_work(a, "s")
        async with b.client("s") as client:
            stream = client.events(after=0)
            first = await anext(stream)
            assert await client.list_agents()
            a.freeze()
            asked = asyncio.gather(client.list_agents(), client.wait_task("t0"), client.wait_task("t1"))
            unknown = asyncio.create_task(client.create_agent("bob"))
            with pytest.raises(ConnectionLostError, match="it is not known whether it took effect"):
                await unknown
            agents, *tasks = await asked
            assert [each.agent_id for each in agents] == ["ann"]
            assert {each.state for each in tasks} == {"completed"}
            found = await evidence(postgresql_server, database, "s")
            found.check()
            seen = [first.seq, *[(await anext(stream)).seq for _ in found.log[1:]]]
            assert seen == [seq for seq, _ in found.log]
            await stream.close()
        a.thaw()
        assert (await asyncio.to_thread(a.process.ended)).code == 1

    with nodes(database, tmp_path, "a", "b") as (a, b):
        asyncio.run(scenario(a, b))


def test_a_client_with_several_addresses_goes_on_at_another_node(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario(a: Node, b: Node) -> None:
        await set_to_work(a, "s")
        async with Client(f"{a.url},{b.url}", TOKEN, session_id="s") as client:
            stream = client.events(after=0)
            reading = asyncio.create_task(read_until(stream, "agent.stopped"))
            waiting = asyncio.gather(client.wait_task("t0"), client.wait_task("t1"))
            await eventually(partial(client.get_task, "t1"))
            a.kill()
            assert {each.state for each in await waiting} == {"completed"}
            await client.stop_agent("ann")
            seen = [each.seq for each in await reading]
            assert seen == list(range(1, seen[-1] + 1))
            await stream.close()
        (await evidence(postgresql_server, database, "s")).check()

    with nodes(database, tmp_path, "a", "b") as (a, b):
        asyncio.run(scenario(a, b))


def test_a_client_of_a_third_node_goes_on_when_the_node_of_its_session_is_killed(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def all_done() -> bool:
        return (await evidence(postgresql_server, database, "s")).is_over

    async def scenario(a: Node, b: Node, c: Node) -> None:
        await set_to_work(a, "s")
        async with b.client("s") as client:
            stream = client.events(after=0)
            first = await anext(stream)
            waiting = asyncio.create_task(client.wait_task("t1"))
            await eventually(partial(client.get_task, "t1"))
            a.kill()
            assert (await waiting).state == "completed"
            await eventually(all_done)
            found = await evidence(postgresql_server, database, "s")
            found.check()
            assert found.holder in ("b", "c")
            seen = [first.seq, *[(await anext(stream)).seq for _ in found.log[1:]]]
            assert seen == [seq for seq, _ in found.log]
            await stream.close()
        async with c.client("s") as client:
            assert [each.agent_id for each in await client.list_agents()] == ["ann"]

    with nodes(database, tmp_path, "a", "b", "c") as found:
        asyncio.run(scenario(*found))
