"""A witness of what a process really did, which outlives the process: the other end of a pipe.

Every model request and tool call tells when it begins and when it has ended. A line is written at once and whole, so
that killing the process cannot take it back.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.probe import REPOSITORY, ProbeError, command

_FOR_EVER_SECONDS = 3600.0


@dataclass
class Witnessed:
    """What the witness saw of one process. The times are those of the machine's monotonic clock."""

    began_at: float = 0.0
    opening_at: float = 0.0
    first_step_at: float = 0.0
    first_step_cpu: float = 0.0
    """The processor time that the process had taken then, if it tells that."""
    accepted: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    output: str = ""

    def take(self, line: bytes) -> None:
        what, key, at = line.decode().split()
        match what:
            case "opening":
                self.opening_at = float(at)
            case "accepted":
                self.accepted.add(key)
            case "started":
                self.first_step_at = self.first_step_at or float(at)
                self.started.append(key)
            case "processor":
                self.first_step_cpu = self.first_step_cpu or float(key)
            case "finished":
                self.finished.append(key)


def witness(function: Callable[..., Any], data: Path, *, kill_at: int | None) -> Witnessed:
    """Run the function in a process and write down what it tells; kill it when so many steps have ended."""
    name = f"{function.__module__}:{function.__name__}"
    return witness_command(
        lambda pipe: command(name, data, {"pipe": pipe, "fresh": kill_at is not None}), name=name, kill_at=kill_at
    )


def witness_command(
    command_line: Callable[[int], Sequence[str]],
    *,
    name: str,
    kill_at: int | None,
    timeout_seconds: float | None = None,
) -> Witnessed:
    """The same for any command line that is made for the descriptor of the pipe."""
    reading, writing = os.pipe()
    seen = Witnessed(began_at=time.monotonic())
    with subprocess.Popen(
        command_line(writing),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        pass_fds=(writing,),
        text=True,
    ) as process:
        os.close(writing)
        over = threading.Timer(timeout_seconds or _FOR_EVER_SECONDS, process.kill)
        over.daemon = True
        over.start()
        with open(reading, "rb", buffering=0) as pipe:
            rest = b""
            while piece := pipe.read(65_536):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    seen.take(line)
                    if len(seen.finished) == kill_at:
                        process.kill()
        seen.output = process.communicate()[0]
        over.cancel()
    if kill_at is None and process.returncode != 0:
        raise ProbeError(f"{name} did not finish after the restart.")
    if kill_at is not None and (process.returncode != -9 or len(seen.finished) < kill_at):
        raise ProbeError(f"{name} ended before it was killed, with exit code {process.returncode}.")
    return seen


class Teller:
    """The working process's end of the pipe, and two outside calls that tell of themselves."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, what: str, key: str = "-") -> None:
        os.write(self._descriptor, f"{what} {key} {time.monotonic():.6f}\n".encode())

    async def ask(self, step_id: str) -> str:
        """A model request of 25 to 75 ms, always the same for the same step, so that agents do not keep in step."""
        self.tell("started", step_id)
        await asyncio.sleep(0.025 + zlib.crc32(step_id.encode()) % 50 / 1000)
        self.tell("finished", step_id)
        return f"answer of {step_id}"

    async def look_up(self, step_id: str) -> str:
        self.tell("started", step_id)
        self.tell("finished", step_id)
        return f"fact of {step_id}"
