"""The level of bubblewrap: namespaces. What is not bound into the job's file system is not there at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import namespaces, seccomp, system
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.covering import check_can_be_hidden, leading_to, lies_in, outermost
from ai_whisperer.sandbox.held import Held, PlainProcess, go_first_without, limit_this_process
from ai_whisperer.sandbox.owners import LINK_ADVICE, Owners
from ai_whisperer.sandbox.privileges import JOB_USER
from ai_whisperer.sandbox.system import existing

_SMALL_TEMPORARY = ["--size", str(system.SHARED_MEMORY_BYTES), "--perms", "1777", "--tmpfs", system.TEMPORARY]
_APART = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
_UNTIL_IT_IS_ANOTHER = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")


class BubblewrapLevel:
    """Holds files, processes and network by namespaces, and the rest by limits.

    A job never has network: it could only be opened as a whole, with this machine and its own networks in it. What root
    starts becomes another user inside, for which `setpriv` is needed.
    """

    own_threads = 2

    def start(self, job: Job, group: JobGroup) -> Held:
        program = _found("bwrap", "bubblewrap")
        check_can_be_hidden(job.hidden, job.writable)
        _check_no_links(job)
        is_root = os.geteuid() == 0
        if is_root:
            _show_as_own(job)
        calls = seccomp.descriptor(sockets=seccomp.Sockets.ALONE)
        told = [program, "--seccomp", str(calls), *arguments(job, is_root=is_root), "--"]
        go_first_without(group)
        return PlainProcess(
            [*told, *(_as_job_user() if is_root else []), *job.argv],
            cwd="/",
            env={},
            first=partial(limit_this_process, job),
            inherited=(calls,),
        )

    def warm_up(self, job: Job) -> None:
        shutil.which("bwrap", path=system.PATH)
        arguments(job, is_root=os.geteuid() == 0)


def _found(name: str, package: str) -> str:
    program = shutil.which(name, path=system.PATH)
    if program is None:
        raise SandboxError(f"There is no program '{name}'. Install {package} with the packages of the system.")
    return program


def _check_no_links(job: Job) -> None:
    """Raise `SandboxError` if a folder of the job is a link: somebody may have put it there to lead elsewhere."""
    for path in filter(None, (*job.readable, *job.writable, job.temporary)):
        if os.path.realpath(path) != path:
            raise SandboxError(LINK_ADVICE.format(path=path))


def _as_job_user() -> list[str]:
    """What goes before a program that root starts, inside, so that it runs as the user of programs."""
    user = str(JOB_USER)
    return [
        *(_found("setpriv", "util-linux"), "--reuid", user, "--regid", user, "--clear-groups"),
        *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"),
    ]


def _show_as_own(job: Job) -> None:
    """Let the files of the job be those of the user that it becomes, for this process and what it starts."""
    temporary = [job.temporary] if job.temporary else []
    paths = [path for path in job.readable if path not in system.interpreter_folders()]
    writable = [*job.writable, *temporary]
    try:
        namespaces.enter_mounts()
        Owners("/proc").lay_over([*paths, *writable], writable, (*job.owned, *temporary))
    except OSError as error:
        raise SandboxError(f"The files of the program could not be laid out: {error}.") from error


def arguments(job: Job, *, is_root: bool) -> list[str]:
    """What bubblewrap is told. Later mounts lie over earlier ones, so the folders that may be written come last."""
    in_hidden = {path for path in (*job.readable, *job.writable) if lies_in(path, job.hidden)}
    told = ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", *_APART]
    if is_root:
        for capability in _UNTIL_IT_IS_ANOTHER:
            told += ["--cap-add", capability]
    else:
        told += ["--unshare-user"]
    for folder in existing(system.FOLDERS):
        if os.path.islink(folder):
            told += ["--symlink", os.readlink(folder), folder]
        else:
            told += ["--ro-bind", folder, folder]
    for path in existing(system.ETC):
        told += [*_way_to(path), "--ro-bind-try", path, path]
    told += ["--proc", "/proc", "--dev", "/dev", *_nothing_over(system.OF_THE_KERNEL)]
    told += ["--size", str(min(system.SHARED_MEMORY_BYTES, job.memory_bytes)), "--perms", "1777"]
    told += ["--tmpfs", system.SHARED_MEMORY]
    told += ["--bind", job.temporary, system.TEMPORARY] if system.is_temporary_free(job) else _SMALL_TEMPORARY
    told += _binds(job, lambda path: path not in in_hidden)
    told += _cover(job)
    told += _binds(job, lambda path: path in in_hidden)
    told += [*_way_to(job.temporary), "--bind", job.temporary, job.temporary] if job.temporary else []
    for path in filter(os.path.isdir, outermost(job.hidden)):
        told += ["--remount-ro", path] if path not in in_hidden else []
    told += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", job.cwd]
    for name, value in job.env.items():
        told += ["--setenv", name, value]
    return told


def _binds(job: Job, is_meant: Callable[[str], bool]) -> Iterator[str]:
    binds = dict.fromkeys(job.readable, "--ro-bind") | dict.fromkeys(job.writable, "--bind")
    for path in sorted(filter(is_meant, binds)):  # what may only be read in what may be written is a mount over that
        yield from (*_way_to(path), binds[path], path, path)


def _way_to(path: str) -> Iterator[str]:
    """The folders above it, through which everybody may go; bubblewrap's own are for root alone."""
    for above in reversed(Path(path).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(above))


def _cover(job: Job) -> Iterator[str]:
    """Mounts over what is hidden. A folder that leads there becomes a mount of its own: nobody can rename one."""
    for above in leading_to(job.hidden, job.writable):
        yield from ("--bind", above, above)
    yield from _nothing_over(outermost(job.hidden))


def _nothing_over(paths: Iterable[str]) -> Iterator[str]:
    for path in existing(paths):
        yield from ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", os.devnull, path)
