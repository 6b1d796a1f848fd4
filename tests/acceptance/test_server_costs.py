"""What the server spends on its clients, counted: no clock is asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

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


def test_what_is_written_leaves_at_once(tmp_path: Path, sockets: list[ClientSocket]) -> None:
    async def scene(url: str) -> None:
        async with connected(url):
            (made,) = sockets
            raw = made.transport.get_extra_info("socket")
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "answers wait for acknowledgements"

    play(tmp_path, scene)
