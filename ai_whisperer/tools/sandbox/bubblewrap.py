"""The level of bubblewrap: namespaces. What is not bound into the job's file system is not there at all."""

from __future__ import annotations

import os
import shutil

from ai_whisperer.errors import SandboxError
from ai_whisperer.tools.sandbox import seccomp, system
from ai_whisperer.tools.sandbox.base import Job
from ai_whisperer.tools.sandbox.held import Held, PlainProcess, existing, limit_this_process
from ai_whisperer.tools.sandbox.rlimits import limit_processes

_SHARED_MEMORY_BYTES = 64 << 20


class BubblewrapLevel:
    """Holds files, processes and network by namespaces, and the rest by limits. Network is all or nothing."""

    def start(self, job: Job) -> Held:
        program = shutil.which("bwrap", path=system.PATH)
        if program is None:
            raise SandboxError("There is no program 'bwrap'. Install bubblewrap with the packages of the system.")

        def first() -> None:
            limit_this_process(job)
            limit_processes(job)

        calls = seccomp.descriptor()
        filtered = [] if calls is None else ["--seccomp", str(calls)]
        told = [program, *filtered, *arguments(job), "--", *job.argv]
        return PlainProcess(told, cwd="/", env={}, first=first, inherited=() if calls is None else (calls,))

    def warm_up(self, job: Job) -> None:
        shutil.which("bwrap", path=system.PATH)
        arguments(job)


def arguments(job: Job) -> list[str]:
    """What bubblewrap is told. Later mounts lie over earlier ones, so the folders that may be written come last."""
    told = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    if "*" in job.network:
        told.append("--share-net")
    for folder in existing(system.FOLDERS):
        if os.path.islink(folder):
            told += ["--symlink", os.readlink(folder), folder]
        else:
            told += ["--ro-bind", folder, folder]
    for path in existing(system.ETC):
        told += ["--ro-bind-try", path, path]
    told += ["--proc", "/proc", "--dev", "/dev"]
    told += ["--size", str(min(_SHARED_MEMORY_BYTES, job.memory_bytes)), "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    told += ["--bind", job.temporary, "/tmp"] if job.temporary else []  # noqa: S108 - inside
    for path in job.readable:
        told += ["--ro-bind", path, path]
    for path in job.writable:
        told += ["--bind", path, path]
    told += ["--bind", job.temporary, job.temporary] if job.temporary else []
    told += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", job.cwd]
    for name, value in job.env.items():
        told += ["--setenv", name, value]
    return told
