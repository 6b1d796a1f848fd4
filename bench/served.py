"""Servers in processes of their own, ours and a floor that only echoes, and what they cost their machine."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from ai_whisperer.models.base import Finished, ModelRequest, StreamEvent, TextDelta
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from bench.probe import REPOSITORY, ProbeError, command

_BYTES_IN_PAGE = os.sysconf("SC_PAGE_SIZE")


class Served:
    """A server that takes requests in another process."""

    def __init__(self, process_id: int, page: str) -> None:
        self._proc = Path("/proc") / str(process_id)
        self.url = page.replace("/?", "/ws?")

    def cpu_seconds(self) -> float:
        """The processor time of all its threads since the process was started."""
        threads = self._proc.glob("task/*/schedstat")
        return sum(int(each.read_text(encoding="ascii").split()[0]) for each in threads) / 1e9

    def resident_bytes(self) -> int:
        return int((self._proc / "statm").read_text(encoding="ascii").split()[1]) * _BYTES_IN_PAGE

    def descriptors(self) -> int:
        return len(list((self._proc / "fd").iterdir()))


@contextmanager
def served(function: Callable[..., Any], folder: Path, **values: Any) -> Iterator[Served]:
    """Run `serve_ours` or `serve_echo` in another process while the block runs."""
    with started(command(f"{function.__module__}:{function.__name__}", folder, values)) as server:
        yield server


@contextmanager
def started(command_line: Sequence[str]) -> Iterator[Served]:
    """The server of this command line, from its line `ready ADDRESS` to the end of the block."""
    with subprocess.Popen(
        command_line, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().split()
        if not said:
            raise ProbeError(f"{' '.join(command_line)} did not start: what it said is above.")
        try:
            yield Served(process.pid, said[1])
        finally:
            process.terminate()


async def serve_ours(folder: Path, *, latency_seconds: float = 0.0) -> None:
    """Our server, with a model that takes about so long to answer, and no limit to the rate of requests."""
    model = PacedModel(latency_seconds)
    settings = Settings(data=folder, port=0, max_requests_per_second=1_000_000)
    async with running(settings, model_factory=lambda _: model) as server:
        await ready(server.address.page)


async def serve_echo(folder: Path) -> None:
    """The least that the same stack can do: take a message apart as JSON and send it back."""
    del folder
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        Starlette(routes=[WebSocketRoute("/ws", _echo)]),
        ws="websockets-sansio",
        ws_max_size=Settings().max_frame_bytes,
        ws_per_message_deflate=False,
        http="h11",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await ready(f"http://127.0.0.1:{listening.getsockname()[1]}/?")
    server.should_exit = True
    await serving


async def ready(page: str) -> None:
    """Tell the address, and wait until the other process is gone, in case that it does not end this one."""
    print(f"ready {page}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        while True:
            message = msgspec.json.decode(await websocket.receive_text())
            await websocket.send_text(msgspec.json.encode(message).decode())
    except WebSocketDisconnect:
        return


class PacedModel:
    """Takes half to one and a half times the latency; for the same prompt of the same agent always the same time."""

    def __init__(self, latency_seconds: float) -> None:
        self._latency_seconds = latency_seconds

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self._latency_seconds:
            key = f"{request.agent_id} {request.turns[-1]}"
            await asyncio.sleep(self._latency_seconds * (0.5 + zlib.crc32(key.encode()) % 1000 / 1000))
        yield TextDelta(text="Done.")
        yield Finished()

    async def close(self) -> None:
        """There is nothing to close."""
