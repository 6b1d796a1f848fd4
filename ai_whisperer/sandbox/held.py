"""A process that runs, held by one of the levels; and what the levels that begin with a plain process share."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import priority
from ai_whisperer.sandbox.base import Ending, Job
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.family import bound_of_ended, cpu_of_ended, largest_of_ended

_LEAST_DATA_BYTES = 64 << 20
"""What holds the job has to live under the limit too; the exact one is held by watching."""


_MOST_FILES = 1024
"""What lies in open sockets and pipes is counted by no other limit."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How the first process of a job ended."""

    ending: Ending
    number: int


def ended_with(code: int) -> Status:
    """How a process ended, from the code that Python gives it."""
    if code < 0:
        return Status(ending=Ending.SIGNALLED, number=-code)
    return Status(ending=Ending.EXITED, number=code)


class Held(Protocol):
    """The first process of a job that runs."""

    @property
    def pid(self) -> int: ...

    @property
    def largest_bytes(self) -> int:
        """The most memory that one of its processes had, as far as it is known when all have ended; else 0."""
        ...

    @property
    def bound_bytes(self) -> int:
        """What none of its processes had more of, as far as it is known when all have ended; else 0."""
        ...

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of all its processes, as far as they are known when all have ended; else 0."""
        ...

    @property
    def all_gone(self) -> bool:
        """Whether it is known from `status` that no process of the job is left; else they have to be ended."""
        ...

    @property
    def holders(self) -> int:
        """How many of the processes, from the first on, hold the job and are none of its own."""
        ...

    def ended(self) -> int:
        """A descriptor from which there is something to read once it has ended."""
        ...

    def status(self) -> Status:
        """How it ended; it has to have ended."""
        ...

    def step_back(self) -> None:
        """Let all of it come after others, if it can be had; its sessions are let each by itself."""
        ...


class Level(Protocol):
    """One way to hold a job. It is called in the keeper, whose standard streams are those of the job."""

    def start(self, job: Job) -> Held:
        """Start the job; raises `SandboxError` if it cannot be held."""
        ...

    def warm_up(self, job: Job) -> None:
        """Do what of `start` can be done without starting anything, so that it is quick when it counts."""
        ...

    def clear_up(self) -> None:
        """Give back what was made for the job; all its processes have ended."""
        ...


def limit_this_process(job: Job) -> None:
    """Take the limits on this process, for all that it starts to inherit; they cannot be raised again.

    Never in the keeper: one that a limit of the job can end cannot end the job.
    """
    cpu = max(1, int(job.cpu_seconds) + 1)
    limits = {
        resource.RLIMIT_DATA: max(job.memory_bytes, _LEAST_DATA_BYTES),
        resource.RLIMIT_FSIZE: job.file_bytes,
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _MOST_FILES,
    }
    for kind, wanted in limits.items():
        _, hard = resource.getrlimit(kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def check_nothing_hidden(job: Job, level: str) -> None:
    """Raise `SandboxError` if the job must not see all of its folders, for a level that cannot hold it to that."""
    if job.hidden:
        raise SandboxError(
            f"{level} cannot keep a program from a part of a folder that it may see, and '{job.hidden[0]}' is such a "
            "part; nothing was run. Leave the setting sandbox at 'auto' where namespaces or bubblewrap hold, or grant "
            "a folder that holds neither the data folder nor the project folder."
        )


class PlainProcess:
    """A process that was started without a library's help."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        first: Callable[[], None],
        group: JobGroup,
        inherited: Sequence[int] = (),
    ) -> None:
        """Start it in the group; `first` is called in it before the program begins, which inherits the descriptors.

        Where only watching keeps the job to its number of processes, this process goes before all others from now on.
        """
        self._group = group
        if os.geteuid() == 0 and not group.holds:
            priority.go_first()  # before there is a job that could keep this process from its work by its number
        try:
            self._process = subprocess.Popen(  # noqa: S603 - to run what others wrote is what a sandbox is for
                argv,
                cwd=cwd,
                env=env,
                preexec_fn=first,  # noqa: PLW1509 - a keeper has no threads here
                start_new_session=True,
                pass_fds=inherited,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise SandboxError(f"{argv[0]} could not be started: {error}.") from error

    holders = 0
    all_gone = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def largest_bytes(self) -> int:
        return largest_of_ended()

    @property
    def bound_bytes(self) -> int:
        return bound_of_ended()

    @property
    def cpu_seconds(self) -> float:
        return cpu_of_ended()

    def ended(self) -> int:
        return os.pidfd_open(self.pid)

    def status(self) -> Status:
        return ended_with(self._process.wait())

    def step_back(self) -> None:
        self._group.step_back()


def let_go_of_streams() -> None:
    """Give up the streams of the job, so that its output ends when its own processes do."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
