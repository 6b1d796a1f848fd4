"""The level of bubblewrap: namespaces. What is not bound into the job's file system is not there at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator

from ai_whisperer.errors import SandboxError
from ai_whisperer.tools.sandbox import seccomp, system
from ai_whisperer.tools.sandbox.base import Job
from ai_whisperer.tools.sandbox.cgroups import JobGroup
from ai_whisperer.tools.sandbox.held import Held, PlainProcess, existing, limit_this_process
from ai_whisperer.tools.sandbox.rlimits import limit_processes

_SHARED_MEMORY_BYTES = 64 << 20
_OWN_PROCESSES = 2


class BubblewrapLevel:
    """Holds files, processes and network by namespaces, and the rest by limits.

    A job never has network: it could only be opened as a whole, with this machine and its own networks in it.
    """

    def __init__(self) -> None:
        self._group = JobGroup()

    def start(self, job: Job) -> Held:
        program = shutil.which("bwrap", path=system.PATH)
        if program is None:
            raise SandboxError("There is no program 'bwrap'. Install bubblewrap with the packages of the system.")
        _check_can_be_hidden(job)

        def first() -> None:
            limit_this_process(job)
            limit_processes(job)

        calls = seccomp.descriptor()
        filtered = [] if calls is None else ["--seccomp", str(calls)]
        told = [program, *filtered, *arguments(job), "--", *job.argv]
        self._group.enter()
        self._group.hold(job.threads + _OWN_PROCESSES)
        return PlainProcess(
            told, cwd="/", env={}, first=first, group=self._group, inherited=() if calls is None else (calls,)
        )

    def warm_up(self, job: Job) -> None:
        shutil.which("bwrap", path=system.PATH)
        arguments(job)
        self._group.enter()

    def clear_up(self) -> None:
        self._group.remove()


def arguments(job: Job) -> list[str]:
    """What bubblewrap is told. Later mounts lie over earlier ones, so the folders that may be written come last."""
    in_hidden = {path for path in (*job.readable, *job.writable) if _lies_in(path, job.hidden)}
    told = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
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
    told += _binds(job, lambda path: path not in in_hidden)
    told += _cover(job)
    told += _binds(job, lambda path: path in in_hidden)
    told += ["--bind", job.temporary, job.temporary] if job.temporary else []
    for path in filter(os.path.isdir, _outermost(job.hidden)):
        told += ["--remount-ro", path] if path not in in_hidden else []
    told += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", job.cwd]
    for name, value in job.env.items():
        told += ["--setenv", name, value]
    return told


def _binds(job: Job, is_meant: Callable[[str], bool]) -> list[str]:
    told: list[str] = []
    for path in filter(is_meant, job.readable):
        told += ["--ro-bind", path, path]
    for path in filter(is_meant, job.writable):
        told += ["--bind", path, path]
    return told


def _cover(job: Job) -> list[str]:
    """Mounts over what is hidden. A folder that leads there becomes a mount of its own: nobody can rename one."""
    told: list[str] = []
    for above in sorted({above for path in job.hidden for above in _between(path, job.writable)}):
        told += ["--bind", above, above]
    for path in existing(_outermost(job.hidden)):
        told += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", os.devnull, path]
    return told


def _outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie in none of the others."""
    return [path for path in sorted(set(paths)) if not _lies_in(os.path.dirname(path), paths)]


def _check_can_be_hidden(job: Job) -> None:
    """Raise `SandboxError` if something hidden could be made or swapped by the job: a mount needs a place, no link."""
    for path in job.hidden:
        if os.path.realpath(path) != path:
            raise SandboxError(f"'{path}' is, or leads through, a symbolic link, so programs cannot be kept from it.")
        if not os.path.lexists(path) and _lies_in(path, job.writable):
            raise SandboxError(f"'{path}' is not there, so programs cannot be kept from making it.")


def _between(path: str, folders: Iterable[str]) -> Iterator[str]:
    """The folders above the path that lie in one of these folders."""
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and _lies_in(os.path.dirname(above), folders):
        yield above
        above = os.path.dirname(above)


def _lies_in(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of these folders or lies in one; all of them are without links."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
