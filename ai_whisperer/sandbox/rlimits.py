"""The weakest level: limits and nothing more. Files and network are as open as they are for the server."""

from __future__ import annotations

import resource
from pathlib import Path

from ai_whisperer.sandbox import priority
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.family import die_with_parent
from ai_whisperer.sandbox.held import Held, PlainProcess, check_nothing_hidden, limit_this_process


class RlimitsLevel:
    """Holds memory, CPU seconds, size of files and number of processes."""

    def __init__(self) -> None:
        self._group = JobGroup()

    def start(self, job: Job) -> Held:
        check_nothing_hidden(job, "rlimits")

        def first() -> None:
            die_with_parent()
            priority.give_up_urgency()
            limit_this_process(job)
            limit_processes(job)

        self._group.enter()
        self._group.hold(job.threads)
        return PlainProcess(job.argv, cwd=job.cwd, env=job.env, first=first, group=self._group)

    def warm_up(self, job: Job) -> None:  # noqa: ARG002 - its group is the same for all jobs
        self._group.enter()

    def clear_up(self) -> None:
        self._group.remove()


def limit_processes(job: Job) -> None:
    """Let the user of this process have as many threads more as the job may. Only a group holds root to it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    wanted = threads_in_use() + job.threads
    value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (value, value))


def threads_in_use() -> int:
    """How many threads there are, of all users: rather too many than too few."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
