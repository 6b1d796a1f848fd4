"""Ways to processes of others: to see, signal, trace, slow down or starve them."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import called, in_a_child, server_of, way

_PTRACE_DETACH, _PTRACE_SEIZE = 17, 0x4206


for _file in ("environ", "mem", "maps", "cmdline", "fd", "cwd", "root/etc/hostname"):

    def _read(outside: dict[str, Any], file: str = _file) -> Any:
        path = f"/proc/{server_of(outside)}/{file}"
        if file == "fd":
            return bool(os.listdir(path))
        if file == "cwd":
            return bool(os.readlink(path))
        with open(path, "rb") as opened:
            return file == "mem" or bool(opened.read(16))

    way(f"read {_file} of the server")(_read)


@way("read the environment of its keeper")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return os.getppid() > 0 and bool(open(f"/proc/{os.getppid()}/environ").read(16))


@way("signal the server")
def _(outside: dict[str, Any]) -> Any:
    os.kill(server_of(outside), 0)


@way("get hold of the server to signal it")
def _(outside: dict[str, Any]) -> Any:
    signal.pidfd_send_signal(os.pidfd_open(server_of(outside)), 0)


@way("trace the server")
def _(outside: dict[str, Any]) -> Any:
    called(outside, "ptrace", _PTRACE_SEIZE, server_of(outside), 0, 0)
    called(outside, "ptrace", _PTRACE_DETACH, server_of(outside), 0, 0)


@way("read the memory of the server")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "process_vm_readv", server_of(outside), None, 0, None, 0, 0)


@way("take a descriptor of the server")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "pidfd_getfd", os.pidfd_open(server_of(outside)), 0, 0)


@way("compare itself with the server")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "kcmp", os.getpid(), server_of(outside), 1, 0, 0)


@way("read the limits of the server")
def _(outside: dict[str, Any]) -> Any:
    return resource.prlimit(server_of(outside), resource.RLIMIT_CORE)


@way("limit the CPU time of the server")
def _(outside: dict[str, Any]) -> Any:
    limits = resource.prlimit(server_of(outside), resource.RLIMIT_CPU)
    return resource.prlimit(server_of(outside), resource.RLIMIT_CPU, limits)


@way("take priority from the server")
def _(outside: dict[str, Any]) -> Any:
    os.setpriority(os.PRIO_PROCESS, server_of(outside), os.getpriority(os.PRIO_PROCESS, server_of(outside)))


@way("schedule the server")
def _(outside: dict[str, Any]) -> Any:
    policy = os.sched_getscheduler(server_of(outside))
    os.sched_setscheduler(server_of(outside), policy, os.sched_getparam(server_of(outside)))


@way("take processors from the server")
def _(outside: dict[str, Any]) -> Any:
    os.sched_setaffinity(server_of(outside), os.sched_getaffinity(server_of(outside)))


@way("let the disk work for the server later")
def _(outside: dict[str, Any]) -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
    return libc.syscall(number, 1, server_of(outside), (2 << 13) | 4) == 0


@way("let the server be killed first when memory is short")
def _(outside: dict[str, Any]) -> Any:
    os.close(os.open(f"/proc/{server_of(outside)}/oom_score_adj", os.O_WRONLY))


@way("be the last that is killed when memory is short")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    with open("/proc/self/oom_score_adj", "r+") as file:
        lower = max(int(file.read()) - 1, -1000)
        file.seek(0)
        file.write(str(lower))


@way("go before others")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return in_a_child(lambda: os.nice(-1) and None)


@way("go before everything")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return in_a_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))


@way("lock memory without a limit")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return in_a_child(lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1)))
