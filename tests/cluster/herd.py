"""The nodes of a run: each has a port, a data folder and a way to PostgreSQL of its own, and is kept running."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from contextlib import AsyncExitStack, suppress
from itertools import count
from pathlib import Path

import msgspec

from tests.cluster.stage import RULES, TOKEN
from tests.cluster.zygote import Order
from tests.postgresql import free_port
from tests.proxy import Proxy

_RESTART_SECONDS = 0.2
_LOOK_SECONDS = 0.05
_TRACEBACK = "Traceback (most recent call last)"
_SHOWN_OF_AN_ERROR = 6_000
_SHOWN_LINES = 60
_SHOWN_CHARACTERS = 600
_REFUSED = "another process has taken over"
FENCED = "Another process has taken over"
CODES = {0, 1, 3, 128 + signal.SIGTERM, -signal.SIGTERM, -signal.SIGKILL}
"""What a node may end with: stopped; failed with a sentence; stopped while the database did not answer; told to
stop twice, or before it could be told; killed."""


class Zygote:
    """The process that forks nodes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = count(1)
        self._started: dict[int, asyncio.Future[int]] = {}
        self._ended: dict[int, asyncio.Future[int]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def begin(cls) -> Zygote:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WHISPERER_")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-m", "tests.cluster.zygote"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=environment,
        )
        return cls(process)

    async def start(
        self, arguments: list[str], *, errors: Path, calls: Path, bug: str
    ) -> tuple[int, asyncio.Future[int]]:
        """Start a node; returns the id of its process, and its exit code when it has ended."""
        number, loop = next(self._numbers), asyncio.get_running_loop()
        started, ended = loop.create_future(), loop.create_future()
        self._started[number], self._ended[number] = started, ended
        order = Order(number=number, arguments=arguments, errors=str(errors), calls=str(calls), bug=bug)
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        return await started, ended

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            what, number, value = line.split()
            waiting = (self._started if what == b"started" else self._ended)[int(number)]
            if not waiting.done():  # or else nobody waits any more
                waiting.set_result(int(value))


class Node:
    """One node, which is kept running."""

    def __init__(self, name: str, proxy: Proxy, folder: Path) -> None:
        self.name = name
        self.proxy = proxy
        self.folder = folder / name
        self.folder.mkdir()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.down_seconds = _RESTART_SECONDS
        self.may_be_condemned = False
        self.lives = 0
        self.condemned: set[int] = set()
        self.bad_ends: list[str] = []
        self._pid = 0

    async def keep(self, zygote: Zygote, store: str, *, bug: str) -> None:
        """Start it, and start it again whenever it has ended, as a supervisor does."""
        rules = self.folder.parent / "rules.yaml"
        flags = ["--port", str(self.port), "--store", store, "--token", TOKEN, "--model", f"scripted:{rules}"]
        flags += ["--data", str(self.folder), "--node", self.name, "--shutdown-grace-seconds", "1", "--session", "s0"]
        while True:
            errors = self.folder / f"errors {self.lives}"
            self.lives += 1
            calls = self.folder.parent / "calls"
            self._pid, ended = await zygote.start(["serve", *flags], errors=errors, calls=calls, bug=bug)
            code = await ended
            pid, self._pid = self._pid, 0
            self._look_at_the_end(pid, code, errors.read_text(errors="replace") if errors.exists() else "")
            seconds, self.down_seconds = self.down_seconds, _RESTART_SECONDS
            await asyncio.sleep(seconds)

    def look(self) -> None:
        """Look at what it has told so far; what it told before it ended was looked at then."""
        errors = self.folder / f"errors {self.lives - 1}"
        if self._pid and errors.exists():
            self._look_at(errors.read_text(errors="replace"))

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    async def sessions_held(self) -> int:
        """How many sessions it takes to be its own; waits for it if it is about to start again."""
        asking = urllib.request.Request(f"{self.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
        told = ""
        while not told:
            try:
                told = await asyncio.to_thread(lambda: urllib.request.urlopen(asking, timeout=9).read().decode())  # noqa: S310
            except (urllib.error.URLError, ConnectionError):
                await asyncio.sleep(_LOOK_SECONDS)
        found = re.search(r"^whisperer_node_sessions (\S+)$", told, re.MULTILINE)
        assert found, told
        return int(float(found[1]))

    @property
    def log(self) -> str:
        """What all its lives told at last."""
        file = self.folder / "logs" / "server.log"
        lines = file.read_text(errors="replace").splitlines()[-_SHOWN_LINES:] if file.exists() else []
        told = self.folder / f"errors {self.lives - 1}"
        if told.exists():
            lines += [line for line in told.read_text(errors="replace").splitlines() if line.startswith("waits: ")]
        return "\n".join(f"{self.name} {line[:_SHOWN_CHARACTERS]}" for line in lines)

    def _look_at_the_end(self, pid: int, code: int, errors: str) -> None:
        self._look_at(errors)
        if FENCED in errors:
            self.condemned.add(pid)
            if not self.may_be_condemned:
                self.bad_ends.append(f"node {self.name} was taken for dead without a cause")
        if code not in CODES:
            self.bad_ends.append(f"node {self.name} ended with {code}")

    def _look_at(self, errors: str) -> None:
        if "duplicate key" in errors:
            self.bad_ends.append(f"node {self.name} wrote what was there already")
        if _REFUSED in errors and not self.may_be_condemned:
            self.bad_ends.append(f"node {self.name} was refused what it wrote, though it was not taken for dead")
        if _TRACEBACK in errors:
            told = errors[errors.index(_TRACEBACK) :][:_SHOWN_OF_AN_ERROR]
            self.bad_ends.append(f"node {self.name} told of an error that nobody handled: {told}")


class Herd:
    """All nodes of a run."""

    def __init__(self, zygote: Zygote, folder: Path, *, bug: str = "") -> None:
        self._zygote = zygote
        self._folder = folder
        self._bug = bug
        self._keeping: list[asyncio.Task[None]] = []
        self.nodes: dict[str, Node] = {}
        (folder / "rules.yaml").write_text(RULES, encoding="utf-8")

    async def start(self, stack: AsyncExitStack, database: str, *names: str) -> None:
        for name in names:
            proxy = Proxy(database)
            store = await stack.enter_async_context(proxy.running())
            node = self.nodes[name] = Node(name, proxy, self._folder)
            self._keeping.append(asyncio.create_task(node.keep(self._zygote, store, bug=self._bug)))
        stack.push_async_callback(self._end)

    def heal(self) -> None:
        """Let all nodes run, and reach the database."""
        for node in self.nodes.values():
            node.signal(signal.SIGCONT)
            node.proxy.takes, node.proxy.delay_seconds, node.proxy.cut_after = True, 0.0, None
            node.proxy.release()

    async def _end(self) -> None:
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        for node in self.nodes.values():
            node.signal(signal.SIGKILL)
