"""The demo's server process, and the plug that can be pulled."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from ai_whisperer.cli.demo.served import Complaint
from ai_whisperer.errors import WhispererError
from ai_whisperer.protocol.errors import SERVER_ERROR, from_rpc
from ai_whisperer.server.address import Address

_LEAVING_SECONDS = 15.0


class ServerProcess:
    """The server of the demo. Started again, it is found at the same address, with what was on disk."""

    def __init__(self, data: Path, *, port: int, model: str) -> None:
        self._data = data
        self._port = port
        self.model = model
        self._process: asyncio.subprocess.Process | None = None
        self._has_power = asyncio.Event()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self.address = Address(url="", token="", pid=0)

    async def start(self) -> None:
        """Start it and return when it takes requests; raises a `WhispererError` that says why it does not."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ai_whisperer.cli.demo.served",
            str(self._data),
            str(self._port),
            self.model,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._complaints,
        )
        output = self._process.stdout
        line = await output.readline() if output is not None else b""
        try:
            self.address = msgspec.json.decode(line, type=Address)
        except msgspec.MsgspecError:
            await self._process.wait()
            raise self._reason(line) from None
        self._port = int(self.address.url.rpartition(":")[2])
        self._has_power.set()

    async def pull_the_plug(self) -> None:
        """Kill it with SIGKILL, which no process can do anything about; returns when it is gone."""
        self._has_power.clear()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """Let it leave cleanly, if it runs; what does not leave is killed."""
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(_LEAVING_SECONDS):
                    await process.wait()
            except TimeoutError:
                await self.pull_the_plug()
        self._complaints.close()

    def kill(self) -> None:
        """Kill it, and return when it is gone; for whoever leaves without another look at the event loop."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, ChildProcessError):
                self._process.kill()
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    async def failure(self) -> WhispererError:
        """Wait until it has ended by itself, and return why. A plug that is pulled does not count."""
        while True:
            await self._has_power.wait()
            process = self._process
            if process is None or process.stdout is None:
                raise RuntimeError("It has power, but was not started.")
            told = await process.stdout.read()
            await process.wait()
            if self._has_power.is_set() and process is self._process:
                return self._reason(told)

    def _reason(self, told: bytes) -> WhispererError:
        """Why it has ended: what it told, else the last line of its complaints."""
        with suppress(msgspec.MsgspecError):
            complaint = msgspec.json.decode(told, type=Complaint)
            return from_rpc(SERVER_ERROR, complaint.message, {"code": complaint.code})
        self._complaints.seek(0)
        last = self._complaints.read().decode(errors="replace").strip().rpartition("\n")[2]
        return WhispererError(f"The server of the demo has ended by itself{f': {last}' if last else ''}.")
