"""What every sandbox does: run one job, held by the operating system, and tell how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from ai_whisperer.domain.conversation import ToolRun
from ai_whisperer.domain.record import Record

_THREADS_PER_PROCESS = 8


class Job(Record, frozen=True, kw_only=True):
    """A process to run. Paths are absolute.

    It sees the folders of the system that programs need, what is `readable`, and may write what is `writable`; no other
    file is there for it. What is `hidden` in these is not there either, and cannot be made or moved; but what is
    readable or writable in it still is. `temporary` is a writable folder that becomes its place for temporary files.
    What is `owned` of all these was made by the runtime for programs, and may be handed over to the user they run as.
    `env` is all of its environment. `network` are grants of hosts that it may talk to, as a definition has them; a
    level that cannot hold a program to them opens nothing, and without any there is no network. The limits hold for the
    process with all its children; `memory_bytes`, `cpu_seconds` and `processes` of them together. Output beyond
    `output_bytes` is cut in the middle; a job that writes more than `flood_bytes` is ended.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    stdin: bytes = b""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    owned: tuple[str, ...] = ()
    temporary: str = ""
    network: tuple[str, ...] = ()
    wall_seconds: float = 600.0
    cpu_seconds: float = 300.0
    memory_bytes: int = 512 << 20
    processes: int = 64
    file_bytes: int = 1 << 30
    output_bytes: int = 256 << 10
    flood_bytes: int = 64 << 20

    @property
    def threads(self) -> int:
        """How many threads all processes together may have. Many runtimes have some for each processor."""
        return self.processes * _THREADS_PER_PROCESS


class Ending(StrEnum):
    """How a job ended: by itself, by a signal, or because it reached a limit and was ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"
    OUT_OF_CPU = "out_of_cpu"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MANY_PROCESSES = "too_many_processes"
    TOO_MUCH_OUTPUT = "too_much_output"
    CANCELLED = "cancelled"


class Outcome(Record, frozen=True, kw_only=True):
    """How a job ended. When it is told, every process of the job is gone.

    `status` is the exit code, or the number of the signal. `output` is what it wrote on both its outputs, its head and
    its tail if it was much; then a line in between says how much was left out, and `cut_bytes` is that number.
    """

    ending: Ending
    status: int = 0
    output: bytes = b""
    cut_bytes: int = 0
    run: ToolRun

    @property
    def succeeded(self) -> bool:
        return self.ending is Ending.EXITED and self.status == 0


def ignored(output: bytes) -> None:
    """Nobody listens to the output while it is written."""


class Sandbox(Protocol):
    """One way to hold a process. `name` is what the journal keeps."""

    @property
    def name(self) -> str: ...

    async def run(self, job: Job, on_output: Callable[[bytes], None] = ignored) -> Outcome:
        """Run the job to its end; raises `SandboxError` if it could not be started or held, and then nothing runs.

        `on_output` is called on the event loop with pieces of the output, of which some may be left out. When the call
        is cancelled, the whole job is killed, and the `CancelledError` goes on only when all of it is gone.
        """
        ...
