"""What a client does when the connection breaks or the server goes away: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from ai_whisperer import Client, TaskState
from ai_whisperer.client import route
from ai_whisperer.client.address import ServerAddress
from ai_whisperer.client.dialing import UnreachableError, dial
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.task_events import TaskEnded, TaskStateChanged
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import ConnectionLostError
from tests.acceptance.client_stage import StagedServer, Wire

ROOT = Path(__file__).parents[2]
PENDING_REQUESTS = 8
"""So few that a connection may wait for no more than 128 tasks: whoever waits for more must spread them."""


class Stage:
    """A server, and a place for a wire to it: the server must know its address before."""

    def __init__(self, data: Path) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        host = f"127.0.0.1:{self.listening.getsockname()[1]}"
        self.server = StagedServer(
            data, allowed_hosts=(host,), slow_client_seconds=0.2, max_pending_requests=PENDING_REQUESTS
        )

    @asynccontextmanager
    async def wired(self, session_id: str, **options: Any) -> AsyncIterator[tuple[Client, Wire]]:
        """A client whose connections can be cut."""
        wire = Wire(self.listening, self.server.address)
        token = self.server.address.token
        client = Client(wire.url, token, session_id=session_id, **options)
        async with asyncio.timeout(90), await wire.serve(), client:
            await client.create_session(session_id)
            yield client, wire

    def close(self) -> None:
        self.server.close()
        self.listening.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    staged = Stage(tmp_path_factory.mktemp("server"))
    yield staged
    staged.close()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda client: client.send_task("alice", "go"), "async.task.queued"),
        (lambda client: client.send_mail("alice", "s", "b"), "mail.sent"),
        (lambda client: client.reply_mail("report.2~mail", "b"), "mail.sent"),
        (lambda client: client.broadcast_event("e", {"x": 1}), "event.broadcast"),
        (lambda client: client.create_room(["alice"]), "room.created"),
        (lambda client: client.post_message("room", "hello"), "room.message"),
        (lambda client: client.create_schedule(interval_seconds=1e6, event="e"), "schedule.created"),
    ],
    ids=["task", "mail", "reply", "event", "room", "message", "schedule"],
)
def test_a_request_whose_answer_was_lost_is_repeated_and_takes_effect_once(
    stage: Stage, call: Callable[[Client], Awaitable[object]], told: str, request: pytest.FixtureRequest
) -> None:
    async def main() -> None:
        async with stage.wired(request.node.callspec.id) as (client, wire):
            await client.create_agent("alice", auto_start=False)
            await client.create_agent("bob")
            await client.run_task("bob", "write to me", task_id="report")
            await client.create_room(["alice"], room_id="room")
            before = len(await client.notifications())
            wire.cut_before_the_next_answer()
            await call(client)
            assert wire.cuts == 1
            names = [note.name for note in await client.notifications(after=before)]
            assert names.count(told) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.pause_agent("alice"),
        lambda client: client.create_agent("bob"),
        lambda client: client.cancel_task("task"),
    ],
    ids=["pause", "create", "cancel"],
)
def test_a_request_that_cannot_be_repeated_says_that_its_outcome_is_not_known(
    stage: Stage, call: Callable[[Client], Awaitable[object]], request: pytest.FixtureRequest
) -> None:
    async def main() -> None:
        async with stage.wired(request.node.callspec.id) as (client, wire):
            await client.create_agent("alice")
            await client.create_agent("idle", auto_start=False)
            await client.send_task("idle", "go", task_id="task")
            wire.cut_before_the_next_answer()
            with pytest.raises(ConnectionLostError, match="not known whether it took effect"):
                await call(client)
            assert len(await client.list_agents()) >= 2  # and the next request finds its way

    asyncio.run(main())


def test_a_wait_goes_on_over_a_lost_connection(stage: Stage) -> None:
    async def main() -> None:
        async with stage.wired("wait") as (client, wire):
            await client.create_agent("alice", auto_start=False)
            task = await client.send_task("alice", "go")
            waiting = asyncio.ensure_future(client.wait_task(task))
            await asyncio.sleep(0)
            wire.cut_before_the_next_answer()
            await client.get_task(task)
            await client.start_agent("alice")
            assert (await waiting).state is TaskState.COMPLETED

    asyncio.run(main())


def test_a_wait_that_ends_first_is_not_held_up_by_those_before_it(stage: Stage) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("idle", auto_start=False)
        tasks = await asyncio.gather(*(client.send_task("idle", f"task {number}") for number in range(600)))
        waits = [asyncio.ensure_future(client.wait_task(task)) for task in tasks]
        await client.cancel_task(tasks[-1])
        assert (await waits[-1]).state is TaskState.CANCELLED
        assert not any(wait.done() for wait in waits[:-1])
        for wait in waits:
            wait.cancel()

    stage.server.play(scenario, session_id="many")


def test_waits_begun_in_an_outage_hold_up_nothing_after_it(stage: Stage) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("idle", auto_start=False)
        tasks = await asyncio.gather(*(client.send_task("idle", f"task {number}") for number in range(400)))
        await asyncio.to_thread(stage.server.end)
        waits = [asyncio.ensure_future(client.wait_task(task)) for task in tasks]
        await asyncio.sleep(0)
        await asyncio.to_thread(stage.server.begin)
        await client.cancel_task(tasks[-1])
        assert (await waits[-1]).state is TaskState.CANCELLED
        assert not any(wait.done() for wait in waits[:-1])
        for wait in waits:
            wait.cancel()

    stage.server.play(scenario, session_id="many-in-an-outage")


def test_a_stream_goes_on_over_a_lost_connection_without_gap_or_repetition(stage: Stage) -> None:
    async def main() -> None:
        async with stage.wired("cut") as (client, wire):
            await client.create_agent("alice")
            log = await client.notifications()
            async with client.events(after=0, deltas=True) as events:
                seen = [await anext(events)]
                for number in range(5):
                    wire.cut_before_the_next_answer()  # whatever comes next, on this connection or the other
                    await client.send_task("alice", f"task {number}")
                await client.at_rest()
                log = await client.notifications()
                while seen[-1].seq < log[-1].seq:
                    note = await anext(events)
                    if note.seq:
                        seen.append(note)
            assert wire.cuts >= 5
            assert seen == log

    asyncio.run(main())


def test_the_stream_of_a_task_goes_on_over_a_lost_connection(stage: Stage) -> None:
    async def main() -> None:
        async with stage.wired("task-stream") as (client, wire):
            await client.create_agent("alice", auto_start=False)
            task = await client.send_task("alice", "in two parts")
            stream = client.stream(task)
            events = [await anext(stream)]
            for _ in range(3):
                wire.cut_before_the_next_answer()
                await client.list_agents()
            await client.start_agent("alice")
            events += [event async for event in stream]
            assert wire.cuts >= 3
            states = [event.state for event in events if isinstance(event, TaskStateChanged)]
            assert states == ["queued", "running", "continued", "queued", "running", "completed"]
            last = events[-1]
            assert isinstance(last, TaskEnded)
            assert last.answer == "one\ntwo"

    asyncio.run(main())


def test_a_slow_reader_is_closed_and_still_gets_everything_once(stage: Stage) -> None:
    """Far more is told than fits into the buffers between; meanwhile requests are answered."""

    async def scenario(client: Client) -> None:
        page = "x" * 200_000
        before = stage.server.slow_clients
        async with client.events(after=0) as events:
            for number in range(100):
                await client.broadcast_event("page", f"{number} {page}")
            await asyncio.to_thread(stage.server.wait_for_slow_clients, before + 1)
            await client.create_agent("last")
            log = await client.notifications()
            assert [await anext(events) for _ in log] == log

    stage.server.play(scenario, session_id="slow")


def test_requests_wait_for_a_server_that_comes_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = asyncio.Event()

    async def dial_and_tell(address: ServerAddress) -> ClientConnection:
        try:
            return await dial(address)
        except UnreachableError:
            failed.set()
            raise

    async def scenario(client: Client) -> None:
        monkeypatch.setattr(route, "dial", dial_and_tell)
        await client.create_agent("alice")
        async with client.events(after=0) as events:
            await asyncio.to_thread(stage.server.end)
            sending = asyncio.ensure_future(client.send_task("alice", "go"))
            pausing = asyncio.ensure_future(client.pause_agent("alice"))
            await failed.wait()
            await asyncio.to_thread(stage.server.begin)
            task = await sending
            assert (await pausing).state is AgentState.PAUSED
            names = {(await anext(events)).params.get("taskId") for _ in await client.notifications()}
            assert task.id in names

    stage.server.play(scenario, session_id="back")


def test_no_task_is_refused_or_lost_when_the_server_is_restarted_in_peace(stage: Stage) -> None:
    """A step that does not end keeps the server from leaving at once: meanwhile it takes nothing any more."""

    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        await client.create_agent("bob")
        hanging = await client.send_task("alice", "hang")
        sending = asyncio.ensure_future(send(client))
        await asyncio.to_thread(stage.server.end)
        await asyncio.to_thread(stage.server.begin)
        await client.cancel_task(hanging)
        enough.set()
        for task in await sending:
            assert (await client.wait_task(task)).state is TaskState.COMPLETED

    enough = asyncio.Event()

    async def send(client: Client) -> list[TaskRecord]:
        sent: list[TaskRecord] = []
        while not enough.is_set():
            sent.append(await client.send_task("bob", f"task {len(sent)}"))
            await asyncio.sleep(0.01)
        return sent

    stage.server.play(scenario, session_id="leaving")


def test_a_server_that_does_not_come_back_is_an_error_that_says_where(stage: Stage) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        async with client.events() as events:
            await asyncio.to_thread(stage.server.end)
            try:
                for call in (client.list_agents(), client.send_task("alice", "go"), anext(events)):
                    with pytest.raises(ConnectionLostError, match=r"ws://127.0.0.1:\d+/ws could not be reached"):
                        await call
            finally:
                await asyncio.to_thread(stage.server.begin)
        assert len(await client.list_agents()) == 1

    stage.server.play(scenario, session_id="away", reconnect_seconds=0.2)


def test_a_server_that_is_not_there_is_an_error_at_once_that_says_what_to_do() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(ConnectionLostError, match=rf"127.0.0.1:{port}/ws .*refused.*Start .*`whisperer serve`"):
            await Client(f"http://127.0.0.1:{port}/", "token").open()

    asyncio.run(main())


def test_what_is_no_server_of_ours_is_named_so() -> None:
    async def mumble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 smtp ready\r\n")
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(mumble, "127.0.0.1", 0) as other:
            port = other.sockets[0].getsockname()[1]
            with pytest.raises(ConnectionLostError, match="no answer at"):
                await Client(f"http://127.0.0.1:{port}/", "token").open()

    asyncio.run(main())


class Process:
    """The server as people start it, to be killed."""

    def __init__(self, data: Path, port: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ai_whisperer", "serve", "--data", str(data), "--port", port, "--model", "scripted"],
            cwd=data,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.page = self.process.stdout.readline().removeprefix("ready ").strip()

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)


def test_a_killed_server_costs_a_client_nothing(tmp_path: Path) -> None:
    """Notifications are read and tasks are sent while the server is killed and started again on the same port."""

    async def main() -> None:
        server = await asyncio.to_thread(Process, tmp_path, "0")
        port = server.page.rpartition("/?")[0].rpartition(":")[2]
        try:
            async with asyncio.timeout(90), Client(server.page) as client:
                await client.create_agent("alice", {"limits": {"max_concurrent_tasks": 4}})
                events = client.events(after=0)
                following = asyncio.ensure_future(follow(events))
                sending = asyncio.ensure_future(send(client))
                await half.wait()
                server.end(signal.SIGKILL)
                server = await asyncio.to_thread(Process, tmp_path, port)
                await sending
                await client.at_rest()
                log = await client.notifications(limit=100_000)
                last_seq.append(log[-1].seq)
                await client.create_agent("last")
                seen = await following
                assert seen[: len(log)] == log
                assert [note.seq for note in log] == list(range(1, len(log) + 1))
                tasks = await client.list_tasks(limit=1000)
                assert sorted(task.id for task in tasks) == sorted(f"task-{number}" for number in range(60))
                assert {task.state for task in tasks} == {TaskState.COMPLETED}
        finally:
            server.end(signal.SIGTERM)

    last_seq: list[int] = []

    async def follow(events: Any) -> list[Any]:
        seen = []
        async for note in events:
            seen.append(note)
            if last_seq and note.seq > last_seq[0]:
                break
        return seen

    half = asyncio.Event()

    async def send(client: Client) -> None:
        for number in range(60):
            await client.send_task("alice", "go", task_id=f"task-{number}")
            if number == 30:
                half.set()

    asyncio.run(main())
