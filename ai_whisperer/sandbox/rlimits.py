"""The weakest level: limits and nothing more. Files and network are as open as they are for the server."""

from __future__ import annotations

from ai_whisperer.sandbox import priority
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.family import die_with_parent
from ai_whisperer.sandbox.held import Held, PlainProcess, check_nothing_hidden, go_first_without, limit_this_process


class RlimitsLevel:
    """Holds memory, CPU seconds, size of files and number of processes."""

    own_threads = 0

    def start(self, job: Job, group: JobGroup) -> Held:
        check_nothing_hidden(job, "rlimits")

        def first() -> None:
            die_with_parent()
            priority.give_up_urgency()
            limit_this_process(job)

        go_first_without(group)
        return PlainProcess(job.argv, cwd=job.cwd, env=job.env, first=first)

    def warm_up(self, job: Job) -> None:
        """There is nothing to prepare."""
