"""What the tests of the sandboxes share: each level that holds on this machine, and jobs to run in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.sandbox import system
from ai_whisperer.sandbox.base import Job, Outcome
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.sandbox.levels import ALL, STRONG
from ai_whisperer.sandbox.probing import Probe


@cache
def probes() -> dict[str, Probe]:
    async def look() -> dict[str, Probe]:
        chooser = ChosenSandbox()
        try:
            return {each.level: each for each in await chooser.probe_all()}
        finally:
            await chooser.close()

    return asyncio.run(look())


def need(level: str) -> None:
    """Skip the test, and say why, where the level is not there. A strong one that lets something out is a fault."""
    found = probes()[level]
    assert level not in STRONG or not found.ways_out, found.reason
    if not found.runs:
        pytest.skip(f"{level} is not to be had here: {found.reason}")


def need_a_strong_one() -> None:
    if not any(probes()[level].holds for level in STRONG):
        pytest.skip("; ".join(f"{level}: {probes()[level].reason}" for level in STRONG))


class Stage:
    """Runs jobs of one level in a folder."""

    def __init__(self, level: str, folder: Path, launcher: Launcher) -> None:
        self.level = level
        self.folder = folder
        self.sandbox = KeptSandbox(level, launcher)
        self.own = folder / "own"
        self.own.mkdir(exist_ok=True)

    def job(self, *argv: str, **fields: Any) -> Job:
        env = {"PATH": system.PATH, **fields.pop("env", {})}
        readable = (*system.interpreter_folders(), *fields.pop("readable", ()))
        writable = (str(self.own),)
        return Job(
            argv=argv, cwd=str(self.own), env=env, readable=readable, writable=writable, owned=writable, **fields
        )

    def sh(self, command: str, **fields: Any) -> Outcome:
        return asyncio.run(self.sandbox.run(self.job("/bin/sh", "-c", command, **fields)))

    def python(self, code: str, *arguments: str, **fields: Any) -> Outcome:
        program = (system.interpreter(), "-I", "-S", "-c", code, *arguments)
        return asyncio.run(self.sandbox.run(self.job(*program, **fields)))


@contextlib.contextmanager
def staged(level: str, folder: Path, launcher: Launcher | None = None) -> Iterator[Stage]:
    need(level)
    launcher = launcher or Launcher()
    try:
        yield Stage(level, folder, launcher)
    finally:
        asyncio.run(launcher.close())


def a_name() -> str:
    """A number of seconds that nobody else sleeps, by which a process is found."""
    return f"{9000 + uuid.uuid4().int % 100_000}.{uuid.uuid4().int % 10**9}"


def processes_of(name: str) -> list[int]:
    """The processes that have the name among their arguments."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"\0{name}\0".encode() in b"\0" + (each / "cmdline").read_bytes():
                    found.append(int(each.name))
    return found


def until(condition: Callable[[], bool], *, seconds: float = 60.0) -> bool:
    """Wait in this thread for what another process does; whether it did."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


LEVELS = ALL
STRONG_LEVELS = STRONG
