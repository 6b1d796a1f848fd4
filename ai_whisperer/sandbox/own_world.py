"""The level of namespaces: what the kernel itself has, with nothing to install."""

from __future__ import annotations

import subprocess

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import privileges, seccomp
from ai_whisperer.sandbox.apart import Apart
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.held import Status, ended_with


class OwnWorld:
    """What the holder does: go apart, and start the program there. It never has network."""

    goes_apart = True

    def __init__(self, job: Job) -> None:
        del job  # all of them are held alike
        self._apart = Apart(network=False)

    def prepare(self, *, apart: bool) -> None:
        self._apart.prepare(apart=apart)
        seccomp.program(sockets=seccomp.Sockets.ALONE)

    def begin(self, job: Job) -> _Program:
        self._apart.enter(job)
        self._apart.give_up_privileges()
        privileges.be_closed_to_others()
        # There is nobody in its network but the program itself, who may well test a server of its own.
        seccomp.take_on(sockets=seccomp.Sockets.ALONE)
        try:
            return _Program(
                subprocess.Popen(job.argv, cwd=job.cwd, env=job.env, start_new_session=True)  # noqa: S603 - what it is for
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise SandboxError(f"{job.argv[0]} could not be started: {error}.") from error


class _Program:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def status(self) -> Status:
        return ended_with(self._process.wait())
