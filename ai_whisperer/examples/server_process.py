"""The demo's server, in a process of its own: its plug can be pulled at any moment, and it can be started again.

As a program it is called with the data folder, the port, the model and the event loop. When it takes requests it prints
its address as a line of JSON; if it cannot continue, it prints why as another. It leaves cleanly on SIGTERM, and when
its standard input ends: so it does not outlive the demo, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from ai_whisperer.errors import WhispererError
from ai_whisperer.examples.tools import TOOLS
from ai_whisperer.protocol.errors import SERVER_ERROR, from_rpc
from ai_whisperer.secrets import redacted
from ai_whisperer.server.address import Address
from ai_whisperer.server.event_loop import run
from ai_whisperer.server.serving import running
from ai_whisperer.settings import EventLoop, Settings

_LEAVING_SECONDS = 15.0
_STDIN = 0


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """Why it cannot continue, as a `WhispererError` says it."""

    code: str
    message: str


class ServerProcess:
    """The server of the demo. Started again, it is found at the same address, with what was on disk."""

    def __init__(self, data: Path, *, port: int, model: str, event_loop: EventLoop = "asyncio") -> None:
        self.data = data
        self._port = port
        self.model = model
        self._event_loop = event_loop
        self._process: asyncio.subprocess.Process | None = None
        self._has_power = asyncio.Event()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self.address = Address(url="", token="", pid=0)

    async def start(self) -> None:
        """Start it and return when it takes requests; raises a `WhispererError` that says why it does not."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ai_whisperer.examples.server_process",
            str(self.data),
            str(self._port),
            self.model,
            self._event_loop,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._complaints,
            process_group=0,  # Ctrl-C is for the demo, which ends this process in order
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


async def serve(settings: Settings) -> None:
    """Serve until it is time to leave; raises what has stopped the store, if something has."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        if not os.read(_STDIN, 1024):  # nobody holds the other end any more
            signal.raise_signal(signal.SIGTERM)

    async with running(settings, tools=TOOLS) as server:
        loop.add_reader(_STDIN, read)
        try:
            await server.serve_forever(partial(_tell, server.address))
        finally:
            loop.remove_reader(_STDIN)


def _tell(record: Address | Complaint) -> None:
    sys.stdout.write(f"{msgspec.json.encode(record).decode()}\n")
    sys.stdout.flush()


def main(data: str, port: str, model: str, event_loop: EventLoop) -> None:
    settings = Settings(data=Path(data), port=int(port), model=model, shutdown_grace_seconds=2.0)
    try:
        run(serve(settings), event_loop)
    except WhispererError as error:
        _tell(Complaint(code=error.code, message=redacted(error.message)))
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
