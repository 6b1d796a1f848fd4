"""What the server spends on its clients, counted: no clock is asked."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest

from ai_whisperer.server.serving import running
from ai_whisperer.server.socket import ClientSocket
from ai_whisperer.settings import Settings
from bench.raw_client import Caller, Listener

Scene = Callable[[Caller, str], Awaitable[None]]


class Stage:
    """A server on an event loop that runs while a scene is played."""

    def __init__(self, runner: asyncio.Runner, url: str) -> None:
        self._runner = runner
        self._sessions = 0
        self.url = url

    def play(self, scene: Scene) -> None:
        """Play the scene, with somebody who is connected and a session of its own that has an agent."""

        async def main() -> None:
            self._sessions += 1
            async with AsyncExitStack() as stack:
                (caller,) = await self.clients(Caller, 1, stack)
                session = f"session-{self._sessions}"
                await caller.call("session.create", sessionId=session)
                await caller.call("async.createAgent", sessionId=session, agentId="worker", config={}, autoStart=False)
                await scene(caller, session)

        self._runner.run(main())

    @asynccontextmanager
    async def followers(self, session: str, count: int, **options: Any) -> AsyncIterator[list[Listener]]:
        """So many clients that follow the session."""
        async with AsyncExitStack() as stack:
            made = await self.clients(Listener, count, stack, **options)
            await asyncio.gather(*(each.subscribe(session) for each in made))
            yield made

    async def clients(self, kind: Any, count: int, stack: AsyncExitStack, **options: Any) -> list[Any]:
        made = await asyncio.gather(*(kind.connect(self.url, **options) for _ in range(count)))
        for each in made:
            stack.push_async_callback(_left, each)
        return made


async def _left(client: Caller | Listener) -> None:
    client.transport.abort()
    await client.closed


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0)
    with asyncio.Runner() as runner:
        server = running(settings)
        address = runner.run(server.__aenter__()).address
        yield Stage(runner, address.page.replace("/?", "/ws?"))
        runner.run(server.__aexit__(None, None, None))


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[ClientSocket]:
    """The sockets that the server makes for its clients, first that of the scene."""
    made: list[ClientSocket] = []
    begin = ClientSocket.connection_made

    def connection_made(self: ClientSocket, transport: asyncio.BaseTransport) -> None:
        made.append(self)
        begin(self, transport)

    monkeypatch.setattr(ClientSocket, "connection_made", connection_made)
    return made


@contextmanager
def tasks_counted() -> Iterator[list[str]]:
    """What tasks are made on this event loop within the block."""
    made: list[str] = []

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        made.append(repr(coroutine))
        return asyncio.Task(coroutine, loop=loop, **options)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(make)
    try:
        yield made
    finally:
        loop.set_task_factory(None)


def work(session: str) -> dict[str, Any]:
    return {"sessionId": session, "agentId": "worker", "prompt": "go"}


def test_what_is_written_leaves_at_once(stage: Stage, sockets: list[ClientSocket]) -> None:
    async def scene(_: Caller, __: str) -> None:
        raw = sockets[0].transport.get_extra_info("socket")
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "answers wait for acknowledgements"

    stage.play(scene)


def test_the_system_keeps_little_for_a_client_that_does_not_read(stage: Stage, sockets: list[ClientSocket]) -> None:
    async def scene(_: Caller, __: str) -> None:
        raw = sockets[0].transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 128 << 10

    stage.play(scene)


@pytest.mark.parametrize("method", ["async.getAgentStates", "task.list", "mail.list", "usage.get", "room.list"])
def test_a_read_makes_no_task_when_there_is_nothing_to_wait_for(stage: Stage, method: str) -> None:
    async def scene(caller: Caller, session: str) -> None:
        with tasks_counted() as made:
            for _ in range(10):
                await caller.call(method, sessionId=session)
        assert made == []

    stage.play(scene)


def test_a_write_makes_one_task(stage: Stage) -> None:
    async def scene(caller: Caller, session: str) -> None:
        with tasks_counted() as made:
            for _ in range(10):
                await caller.call("async.sendTask", **work(session))
        assert len(made) == 10

    stage.play(scene)


def test_a_read_waits_for_the_write_before_it(stage: Stage) -> None:
    async def scene(caller: Caller, session: str) -> None:
        for number in range(1, 20):
            sent = caller.call("async.sendTask", **work(session))
            states = await caller.call("async.getAgentStates", sessionId=session)
            assert states["agents"]["worker"]["queue_size"] == number
            await sent

    stage.play(scene)


@pytest.mark.parametrize("method", ["async.getAgentStates", "async.sendTask"])
def test_the_answers_to_pipelined_requests_are_written_together(
    stage: Stage, sockets: list[ClientSocket], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async def scene(caller: Caller, session: str) -> None:
        writes: list[int] = []
        put = sockets[0].put

        def counted(frames: bytes) -> None:
            writes.append(len(frames))
            put(frames)

        monkeypatch.setattr(sockets[0], "put", counted)
        params = work(session) if method == "async.sendTask" else {"sessionId": session}
        await caller.call_all(method, [params] * 64)
        assert len(writes) <= 10

    stage.play(scene)


def test_a_client_that_follows_a_session_takes_little_memory(stage: Stage) -> None:
    """What its end in this process takes is counted with it."""

    async def scene(_: Caller, session: str) -> None:
        async with stage.followers(session, 5):
            gc.collect()
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                async with stage.followers(session, 50):
                    gc.collect()
                    taken = tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
            assert taken / 50 < 48 << 10

    stage.play(scene)


def test_clients_that_never_read_hold_a_bounded_part_of_what_is_told(stage: Stage, sockets: list[ClientSocket]) -> None:
    async def scene(caller: Caller, session: str) -> None:
        async with stage.followers(session, 25, receive_bytes=4096) as deaf:
            for each in deaf:
                each.transport.pause_reading()
            news = {"sessionId": session, "event": "news", "data": "x" * 5_000}
            for _ in range(20):
                await caller.call_all("async.broadcastEvent", [news] * 20)
            held = [each.transport.get_write_buffer_size() for each in sockets[1:]]
            assert min(held) > 0
            assert max(held) < 64 << 10
            assert not any(each.closed.done() for each in deaf)

    stage.play(scene)


def test_clients_that_keep_up_are_told_without_a_task_for_each(stage: Stage) -> None:
    async def scene(caller: Caller, session: str) -> None:
        async with stage.followers(session, 50) as followers:
            with tasks_counted() as made:
                await caller.call("async.broadcastEvent", sessionId=session, event="news")
                last = (await caller.call("async.getAgentStates", sessionId=session))["last_seq"]
                while any(each.seq < last for each in followers):  # noqa: ASYNC110 - clients do not tell
                    await asyncio.sleep(0.001)
            assert len(made) <= 2, "the tasks of the two calls"
            assert not any(each.gaps for each in followers)

    stage.play(scene)
