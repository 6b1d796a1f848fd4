"""The level of namespaces: what the kernel itself has, with nothing to install."""

from __future__ import annotations

from ai_whisperer.sandbox import privileges, seccomp
from ai_whisperer.sandbox.apart import Apart
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.held import Program


class OwnWorld:
    """What the holder does: go apart, and start the program there. It never has network."""

    goes_apart = True

    def __init__(self, job: Job) -> None:
        del job  # all of them are held alike
        self._apart = Apart(network=False)

    def prepare(self, *, apart: bool) -> None:
        self._apart.prepare(apart=apart)
        seccomp.program(sockets=seccomp.Sockets.ALONE)

    def begin(self, job: Job) -> Program:
        self._apart.enter(job)
        privileges.become_job_user()  # what the program could attack may do no more than the program itself
        privileges.be_closed_to_others()
        # There is nobody in its network but the program itself, who may well test a server of its own.
        seccomp.take_on(sockets=seccomp.Sockets.ALONE)
        return Program(job.argv, cwd=job.cwd, env=job.env)
