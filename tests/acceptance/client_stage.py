"""A stage for clients: a real server in a thread of its own, and a wire that can be cut."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ai_whisperer.client import Client
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.scripting.background import BackgroundLoop
from ai_whisperer.server.address import Address
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from tests.simulation.stage import call, prompt_of, results_of

Scenario = Callable[[Client], Coroutine[Any, Any, None]]


class StagedServer:
    """A server that can be ended and begun again on the same folder, port and token."""

    def __init__(self, data: Path, **settings: Any) -> None:
        self._settings = Settings(data=data, port=0, shutdown_grace_seconds=0.3, **settings)
        self._background = BackgroundLoop()
        self._stack = AsyncExitStack()
        self.address = Address(url="", token="", pid=0)
        self.begin()

    def begin(self) -> None:
        serving = running(self._settings, model_factory=lambda _: StagedModel(say))
        self.address = self._background.run(self._stack.enter_async_context(serving)).address
        port = int(self.address.url.rpartition(":")[2])
        self._settings = replace(self._settings, port=port)

    def end(self) -> None:
        self._background.run(self._stack.aclose())

    def close(self) -> None:
        self.end()
        self._background.close()

    @property
    def slow_clients(self) -> float:
        """How many the server has closed because they did not read."""
        return self.counted("whisperer_slow_clients_total")

    def wait_for_slow_clients(self, count: float) -> None:
        """Return when there were so many."""
        while self.slow_clients < count:
            time.sleep(0.02)

    def counted(self, name: str) -> float:
        """What the server counts under that name."""
        (value,) = re.findall(rf"^{name} (\S+)$", self.metrics(), re.MULTILINE)
        return float(value)

    def metrics(self) -> str:
        """What the server counts."""
        connection = HTTPConnection(self.address.url.removeprefix("http://"), timeout=60)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.address.token}"})
        with closing(connection):
            return connection.getresponse().read().decode()

    def play(self, scenario: Scenario, *, session_id: str, **options: Any) -> None:
        """Run the scenario with a client, in a session of its own."""

        async def main() -> None:
            async with asyncio.timeout(90), Client(self.address.page, session_id=session_id, **options) as client:
                await client.create_session(session_id)
                await scenario(client)

        asyncio.run(main())


class StagedModel(FunctionModel):
    """Answers as it is told; a task that is to hang is never answered."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if prompt_of(request) == "hang":
            await asyncio.Event().wait()
        async for event in super().stream(request):
            yield event


def say(request: ModelRequest) -> Answer | str:
    """What the agents answer: as they are told."""
    told = prompt_of(request)
    if "fail" in told:
        raise ModelRefusedError("as you wish")
    if "in two parts" in told:
        return "one\n[CONTINUE]"
    if "Continue" in told:
        return "two"
    if "write to me" in told and not results_of(request):
        return call("send_mail", to_agent="user", subject="hello", body="it is me")
    return "done"


class Wire:
    """Carries bytes between clients and a server, and is cut when an answer to what it carried comes back."""

    def __init__(self, listening: socket.socket, server: Address) -> None:
        self._listening = listening
        self._to = server
        self._cut_next = asyncio.Event()
        self.cuts = 0
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def cut_before_the_next_answer(self) -> None:
        self._cut_next.set()

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._carry, sock=self._listening.dup())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = int(self._to.url.rpartition(":")[2])
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            forth = asyncio.create_task(self._copy(reader, far_writer))
            back = asyncio.create_task(self._copy_back(far_reader, writer))
            await asyncio.wait([forth, back], return_when=asyncio.FIRST_COMPLETED)
            forth.cancel()
            back.cancel()
            far_writer.close()
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()

    async def _copy_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what the server says, up to the answer that must not arrive."""
        with suppress(OSError):
            while data := await reader.read(65536):
                if self._cut_next.is_set():
                    self._cut_next.clear()
                    self.cuts += 1
                    return
                writer.write(data)
                await writer.drain()
