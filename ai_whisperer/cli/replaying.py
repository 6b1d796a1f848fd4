"""A server of its own for a conversation script: in another process, which can be killed and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ai_whisperer.client import Client
from ai_whisperer.errors import ScriptError, StateError, WhispererError
from ai_whisperer.replay.place import Place
from ai_whisperer.replay.script import Script
from ai_whisperer.server.address import Address, find_address
from ai_whisperer.server.serving import TOOLS_LEFT_OUT
from ai_whisperer.setting_sources import without_settings

_STARTING_SECONDS = 60.0
_LEAVING_SECONDS = 15.0
_RECONNECT_SECONDS = 60.0


class OwnServer(Place):
    """`whisperer serve` in a folder of its own, from `__aenter__` to `__aexit__`.

    Nothing that is set for other servers holds for it, neither in the environment nor in a file: it could be the
    database that they share.
    """

    def __init__(self, folder: Path, flags: Sequence[str], script: Script) -> None:
        self._data = folder / "data"
        self._tools = folder / "tools"
        self._errors = folder / "errors"
        self._flags = list(flags)
        self._script = script
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None
        self._client: Client | None = None
        self._stack = AsyncExitStack()

    @property
    def session(self) -> Any:
        if self._client is None:
            raise RuntimeError("The server was not started.")
        return self._client

    def check(self, script: Script) -> None:
        """Everything can be done here."""

    async def __aenter__(self) -> OwnServer:
        self._tools.mkdir()
        for path in self._script.tools:
            shutil.copy(path, self._tools)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._stop)
            address = await self._start()
            client = Client(address.url, address.token, reconnect_seconds=_RECONNECT_SECONDS)
            self._client = await stack.enter_async_context(client)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def crash(self) -> None:
        process = self._running
        if process is None:
            raise StateError("The server has ended by itself before it could be killed.")
        process.kill()
        await process.wait()

    async def restart(self) -> None:
        await self._start()

    @property
    def _running(self) -> asyncio.subprocess.Process | None:
        return self._process if self._process is not None and self._process.returncode is None else None

    async def _start(self) -> Address:
        """Start it, at the same port as before; returns when it takes requests."""
        with self._errors.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ai_whisperer", "serve", "--port", str(self._port), "--data", str(self._data)),
                *("--tools", str(self._tools), "--shutdown-grace-seconds", "1", *self._flags),
                cwd=self._errors.parent,
                env=without_settings(os.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                process_group=0,  # Ctrl-C is for this command, which ends the server in order
            )
        try:
            async with asyncio.timeout(_STARTING_SECONDS):
                ready = await self._process.stdout.readline() if self._process.stdout is not None else b""
        except TimeoutError:
            ready = b""
        address = find_address(self._data) if ready else None
        if address is None:
            await self._stop()
            told = self._errors.read_text(encoding="utf-8", errors="replace").strip().removeprefix("whisperer: ")
            raise WhispererError(f"The server of the script did not start. {told}")
        self._port = int(address.url.rpartition(":")[2])
        self._check_tools()
        return address

    def _check_tools(self) -> None:
        """Raise `ScriptError` if a file of tools could not be loaded: nobody would know why its tools are missing."""
        told = self._errors.read_text(encoding="utf-8", errors="replace").splitlines() if self._script.tools else []
        left_out = [line.partition(TOOLS_LEFT_OUT)[2].strip() for line in told if TOOLS_LEFT_OUT in line]
        if left_out:
            words = " ".join(dict.fromkeys(left_out))
            for path in self._script.tools:  # as the script names it, not its copy
                words = words.replace(str(self._tools / path.name), str(path))
            raise ScriptError(f"{self._script.name}: {words}")

    async def _stop(self) -> None:
        process = self._running
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_LEAVING_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
