"""The shell of one node: starts `whisperer serve`, starts it again when it has died, and ends it when told."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ai_whisperer.cluster.ray.chores import names_of
from ai_whisperer.cluster.ray.launch import Launch, environment_of_nodes, settings_file
from ai_whisperer.errors import StoreError
from ai_whisperer.setting_sources import FILE_NAME
from ai_whisperer.store.postgresql.launching import LaunchBook

LOOK_SECONDS: Final = 0.1
ELSEWHERE_SECONDS: Final = 1.0
END_SECONDS: Final = 60.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
SETTLED_SECONDS: Final = 30.0
"""A process that ran for so long did not die of its start."""
_OUTPUT: Final = "serve.out"
_LAST_BYTES: Final = 2_000


class ShellStatus(NamedTuple):
    """What a shell does: the number of its process if it has one, how often one died, and what the last one said."""

    pid: int | None
    deaths: int
    last_words: str


def pause_after(deaths: int) -> float:
    """How long to wait before the next start, when so many processes have died soon after theirs."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** max(deaths - 1, 0), LONGEST_PAUSE_SECONDS)


class Shell:
    """One for each node. It works by itself from the moment it is made, wherever Ray makes it."""

    def __init__(self, store: str, name: str, address: str) -> None:
        self._store = store
        self._name = name
        self._address = address
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths = 0
        self._early_deaths = 0
        self._last_words = ""
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()), daemon=True)
        self._thread.start()

    def status(self) -> ShellStatus:
        process = self._process
        return ShellStatus(None if process is None else process.pid, self._deaths, self._last_words)

    def restart(self) -> bool:
        """Let the process leave, and start another; False if there is none, as it is another shell's."""
        process = self._process
        if process is None:
            return False
        _leave(process)
        return True

    def end(self) -> None:
        """Let the process leave and start none any more; returns when it is gone."""
        self._ending.set()
        with self._lock:
            process = self._process
        if process is not None:
            _leave(process)

    async def _watch(self) -> None:
        book = LaunchBook(self._store)
        while not self._ending.is_set():
            try:
                launch = await launch_of(self._name, book)
            except (ConnectionError, StoreError, msgspec.DecodeError) as error:
                self._last_words = str(error)
                launch = None
            if launch is None:
                await asyncio.sleep(ELSEWHERE_SECONDS)
                continue
            await book.close()
            await self._serve(launch)

    async def _serve(self, launch: Launch) -> None:
        """Have the process, until it has ended; wait, if it did so too soon."""
        began_at = time.monotonic()
        with self._lock:
            if self._ending.is_set():
                return
            try:
                folder = launch.data_of(self._name)
                self._process = self._started(folder, launch)
            except OSError as error:
                self._last_words = str(error)
        process = self._process
        if process is not None:
            await asyncio.to_thread(process.wait)
            self._process = None
            self._last_words = _last_line(folder / _OUTPUT)
        if process is None or process.returncode != 0:
            self._deaths += 1
            is_early = time.monotonic() - began_at < SETTLED_SECONDS
            self._early_deaths = self._early_deaths + 1 if is_early else 0
            await asyncio.to_thread(self._ending.wait, pause_after(self._early_deaths))

    def _started(self, folder: Path, launch: Launch) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f"{FILE_NAME}.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_text(settings_file(launch.settings, self._store), encoding="utf-8")
        draft.replace(folder / FILE_NAME)
        own = ("--node", self._name, "--data", str(folder), "--host", self._address, "--port", "0")
        with (folder / _OUTPUT).open("wb") as output:
            return subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "ai_whisperer", "serve", *own],
                cwd=folder,
                env=environment_of_nodes(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ray that dies takes no node with it
            )


async def launch_of(name: str, book: LaunchBook) -> Launch | None:
    """How to start the node; None if it lives elsewhere, or is not wanted, as after a `down` without Ray."""
    ray = await book.ray()
    if ray is None or name not in names_of(ray.wanted):
        return None
    if any(each.name == name and each.has_lock for each in await book.run_nodes()):
        return None
    return msgspec.json.decode(await book.launch(), type=Launch)


def listening_address(node_address: str) -> str:
    """Where a node listens on a machine that Ray knows by this address."""
    try:
        return "127.0.0.1" if ipaddress.ip_address(node_address).is_loopback else node_address
    except ValueError:
        return node_address


def _leave(process: subprocess.Popen[bytes]) -> None:
    """As after SIGTERM to a server that a person has started; killed if it does not leave."""
    process.send_signal(signal.SIGTERM)
    until = time.monotonic() + END_SECONDS
    while process.poll() is None:
        if time.monotonic() > until:
            process.kill()
        time.sleep(LOOK_SECONDS)


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _LAST_BYTES))
            return output.read().decode(errors="replace").strip().rpartition("\n")[2]
    except OSError:
        return ""
