"""A process that runs, held by one of the levels; and what the levels that begin with a plain process share."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ai_whisperer.domain.record import Record
from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import priority
from ai_whisperer.sandbox.base import Ending, Job
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.family import Used, used_by_ended

_LEAST_DATA_BYTES = 64 << 20
"""What holds the job has to live under the limit too; the exact one is held by watching."""


_MOST_FILES = 1024
"""What lies in open sockets and pipes is counted by no other limit."""


class Status(Record, frozen=True, kw_only=True):
    """How the first process of a job ended."""

    ending: Ending = Ending.EXITED
    number: int = 0


class Started(Protocol):
    """The first process of a job that runs."""

    @property
    def pid(self) -> int: ...

    def status(self) -> Status:
        """How it ended; it has to have ended."""
        ...


class Held(Started, Protocol):
    """The same, as the keeper sees it."""

    @property
    def used(self) -> Used: ...

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


class Level(Protocol):
    """One way to hold a job. It is called in the keeper, whose standard streams are those of the job."""

    @property
    def own_threads(self) -> int:
        """How many threads it needs for itself, beside those of the job."""
        ...

    def start(self, job: Job, group: JobGroup) -> Held:
        """Start the job in the group, in which the keeper is; raises `SandboxError` if it cannot be held."""
        ...

    def warm_up(self, job: Job) -> None:
        """Do what of `start` can be done without starting anything, so that it is quick when it counts."""
        ...


def limit_this_process(job: Job) -> None:
    """Take the limits on this process, for all that it starts to inherit; they cannot be raised again.

    Never in the keeper: one that a limit of the job can end cannot end the job.
    """
    limits = {
        resource.RLIMIT_DATA: max(job.memory_bytes, _LEAST_DATA_BYTES),
        resource.RLIMIT_FSIZE: job.file_bytes,
        resource.RLIMIT_CPU: max(1, int(job.cpu_seconds) + 1),
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _MOST_FILES,
        # So many threads more the user of this process may have as the job may. Only a group holds root to it.
        resource.RLIMIT_NPROC: threads_in_use() + job.threads,
    }
    for kind, wanted in limits.items():
        _, hard = resource.getrlimit(kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def threads_in_use() -> int:
    """How many threads there are, of all users: rather too many than too few."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def check_nothing_hidden(job: Job, level: str) -> None:
    """Raise `SandboxError` if the job must not see all of its folders, for a level that cannot hold it to that."""
    if job.hidden:
        raise SandboxError(
            f"{level} cannot keep a program from a part of a folder that it may see, and '{job.hidden[0]}' is such a "
            "part; nothing was run. Leave the setting sandbox at 'auto' where namespaces or bubblewrap hold, or grant "
            "a folder that holds neither the data folder nor the project folder."
        )


class Program:
    """A program that was started without a library's help. `first` is called in its process before it begins."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        first: Callable[[], None] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        """Start it; it inherits the descriptors. Raises `SandboxError` if it cannot be."""
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
        self.pid = self._process.pid

    def status(self) -> Status:
        code = self._process.wait()
        return Status(ending=Ending.SIGNALLED, number=-code) if code < 0 else Status(number=code)


class PlainProcess(Program):
    """A program that only limits hold, or what it does itself, and nothing between it and the keeper."""

    holders = 0
    all_gone = False

    @property
    def used(self) -> Used:
        return used_by_ended()

    def ended(self) -> int:
        return os.pidfd_open(self.pid)


def go_first_without(group: JobGroup) -> None:
    """Where only watching keeps the job to its number of processes, this process goes before all others from now on.

    Call it before there is a job that could keep this process from its work by its number.
    """
    if os.geteuid() == 0 and not group.holds:
        priority.go_first()


def let_go_of_streams() -> None:
    """Give up the streams of the job, so that its output ends when its own processes do."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
