"""The demo's server process, and the plug that can be pulled."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import msgspec

from ai_whisperer.errors import WhispererError
from ai_whisperer.server.address import Address

_LEAVING_SECONDS = 15.0


class ServerProcess:
    """The server of the demo. Started again, it is found at the same address, with what was on disk."""

    def __init__(self, data: Path, *, port: int, model: str) -> None:
        self._data = data
        self._port = port
        self.model = model
        self._process: asyncio.subprocess.Process | None = None
        self.address = Address(url="", token="", pid=0)

    async def start(self) -> None:
        """Start it and return when it takes requests; raises a `WhispererError` that says why it does not."""
        with tempfile.TemporaryFile() as complaints:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ai_whisperer.cli.demo.served",
                str(self._data),
                str(self._port),
                self.model,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=complaints,
            )
            output = self._process.stdout
            line = await output.readline() if output is not None else b""
            if not line:
                await self._process.wait()
                complaints.seek(0)
                told = complaints.read().decode(errors="replace").strip()
                raise WhispererError(told.rpartition("\n")[2] or "The server of the demo ended before it was ready.")
        self.address = msgspec.json.decode(line, type=Address)
        self._port = int(self.address.url.rpartition(":")[2])

    async def pull_the_plug(self) -> None:
        """Kill it with SIGKILL, which no process can do anything about; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """Let it leave in peace, if it runs; what does not leave is killed."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(_LEAVING_SECONDS):
                await process.wait()
        except TimeoutError:
            await self.pull_the_plug()

    async def ended(self) -> int:
        """Wait until it has ended; returns its exit code."""
        return 0 if self._process is None else await self._process.wait()
