"""What the server spends on its clients, counted: no clock is asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.server.serving import running
from ai_whisperer.server.socket import ClientSocket
from ai_whisperer.settings import Settings
from bench.raw_client import Caller

Scene = Callable[[str], Awaitable[None]]


def play(folder: Path, scene: Scene) -> None:
    """Run the scene against a server, whose address it gets."""

    async def main() -> None:
        async with running(Settings(data=folder, port=0)) as server:
            await scene(server.address.page.replace("/?", "/ws?"))

    asyncio.run(main())


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Caller]:
    caller = await Caller.connect(url)
    try:
        yield caller
    finally:
        caller.transport.abort()
        await caller.closed


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[ClientSocket]:
    """The sockets that the server makes for its clients."""
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


def test_what_is_written_leaves_at_once(tmp_path: Path, sockets: list[ClientSocket]) -> None:
    async def scene(url: str) -> None:
        async with connected(url):
            (made,) = sockets
            raw = made.transport.get_extra_info("socket")
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "answers wait for acknowledgements"

    play(tmp_path, scene)


def test_the_system_keeps_little_for_a_client_that_does_not_read(tmp_path: Path, sockets: list[ClientSocket]) -> None:
    async def scene(url: str) -> None:
        async with connected(url):
            (made,) = sockets
            raw = made.transport.get_extra_info("socket")
            assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 128 << 10

    play(tmp_path, scene)


@pytest.mark.parametrize("method", ["async.getAgentStates", "task.list", "mail.list", "usage.get", "room.list"])
def test_a_read_makes_no_task_when_there_is_nothing_to_wait_for(tmp_path: Path, method: str) -> None:
    async def scene(url: str) -> None:
        async with connected(url) as caller:
            await caller.call("async.createAgent", sessionId="default", agentId="worker", config={}, autoStart=False)
            await caller.call(method, sessionId="default")
            with tasks_counted() as made:
                for _ in range(10):
                    await caller.call(method, sessionId="default")
            assert made == []

    play(tmp_path, scene)


def test_a_write_makes_one_task(tmp_path: Path) -> None:
    async def scene(url: str) -> None:
        async with connected(url) as caller:
            await caller.call("async.createAgent", sessionId="default", agentId="worker", config={}, autoStart=False)
            with tasks_counted() as made:
                for _ in range(10):
                    await caller.call("async.sendTask", sessionId="default", agentId="worker", prompt="go")
            assert len(made) == 10

    play(tmp_path, scene)


def test_a_read_waits_for_the_write_before_it(tmp_path: Path) -> None:
    async def scene(url: str) -> None:
        async with connected(url) as caller:
            await caller.call("async.createAgent", sessionId="default", agentId="worker", config={}, autoStart=False)
            work = {"sessionId": "default", "agentId": "worker", "prompt": "go"}
            for number in range(1, 20):
                sent = caller.call("async.sendTask", **work)
                states = await caller.call("async.getAgentStates", sessionId="default")
                assert states["agents"]["worker"]["queue_size"] == number
                await sent

    play(tmp_path, scene)


def test_the_answers_to_pipelined_requests_are_written_together(tmp_path: Path, sockets: list[ClientSocket]) -> None:
    async def scene(url: str) -> None:
        async with connected(url) as caller:
            await caller.call("async.createAgent", sessionId="default", agentId="worker", config={}, autoStart=False)
            (made,) = sockets
            writes = 0
            put = made.put

            def counted(frames: bytes) -> None:
                nonlocal writes
                writes += 1
                put(frames)

            made.put = counted  # type: ignore[method-assign]
            params = [{"sessionId": "default"}] * 64
            await caller.call_all("async.getAgentStates", params)
            assert writes <= 10
            writes = 0
            work = {"sessionId": "default", "agentId": "worker", "prompt": "go"}
            await caller.call_all("async.sendTask", [work] * 64)
            assert writes <= 10

    play(tmp_path, scene)
