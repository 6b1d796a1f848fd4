"""What of the system every job may see, so that programs run at all; nothing of it is secret."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache

from ai_whisperer.sandbox.base import Job

FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")

ETC = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives",
        "ca-certificates",
        "gitconfig",
        "group",
        "host.conf",
        "hosts",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "localtime",
        "mime.types",
        "nsswitch.conf",
        "passwd",
        "pki/tls/certs",
        "protocols",
        "resolv.conf",
        "services",
        "ssl/cert.pem",
        "ssl/certs",
        "ssl/openssl.cnf",
        "timezone",
    )
)

DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")

STREAMS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
"""What is in /dev beside devices, and where it leads."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - inside
SHARED_MEMORY_BYTES = 64 << 20
"""So much the processes of a job may share there; no other limit counts it."""

OF_THE_KERNEL = tuple(
    f"/proc/{name}"
    for name in (
        *("acpi", "asound", "kcore", "key-users", "keys", "kmsg", "latency_stats", "sched_debug", "scsi"),
        *("sysrq-trigger", "timer_list"),
    )
)
"""What in /proc tells of the machine, or acts on it, and is no program's business."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


TEMPORARY = "/tmp"  # noqa: S108 - inside
"""Where programs look for a place for temporary files that do not ask the environment."""


def is_temporary_free(job: Job) -> bool:
    """Whether the folder for temporary files of the job can stand there: none of its other folders lies there."""
    others = (*job.readable, *job.writable, job.temporary)
    return bool(job.temporary) and not any(f"{path}/".startswith(f"{TEMPORARY}/") for path in others)


def existing(paths: Iterable[str]) -> list[str]:
    """Those of the paths that are there, be it as links that lead nowhere."""
    return [path for path in paths if os.path.lexists(path)]


def interpreter() -> str:
    """The Python that runs code: the server's own."""
    folder, name = os.path.split(sys.executable or "/usr/bin/python3")
    return os.path.join(os.path.realpath(folder), name)


@cache
def interpreter_folders() -> tuple[str, ...]:
    """Where the server's Python has its library, beside what every job sees: a virtual environment, a pyenv."""
    named = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    wanted = {os.path.realpath(each) for each in named if each}
    program = os.path.realpath(sys.executable)
    wanted.add(os.path.dirname(program))
    return tuple(sorted(each for each in wanted if each not in ("", "/") and not folder_around(each, FOLDERS)))


def folder_around(path: str, folders: Iterable[str]) -> str | None:
    """The first of the folders that the path is, or lies in, with links followed; None if there is none."""
    real = os.path.realpath(path)
    for folder in folders:
        if os.path.commonpath([real, os.path.realpath(folder)]) == os.path.realpath(folder):
            return folder
    return None
