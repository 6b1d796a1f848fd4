"""Ways to processes of others: to see, signal, trace, slow down or starve them."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import WAYS, Attempt, Outside, called, in_a_child, server_of, way

_PTRACE_DETACH, _PTRACE_SEIZE = 17, 0x4206


def _on_server(act: Callable[[int], Any]) -> Attempt:
    return lambda outside: act(server_of(outside))


for _file in ("environ", "mem", "maps", "cmdline", "fd", "cwd", "root/etc/hostname"):

    def _read(outside: Outside, file: str = _file) -> Any:
        path = f"/proc/{server_of(outside)}/{file}"
        if file == "fd":
            return bool(os.listdir(path))
        if file == "cwd":
            return bool(os.readlink(path))
        with open(path, "rb") as opened:
            return file == "mem" or bool(opened.read(16))

    way(f"read {_file} of the server")(_read)


@way("read the environment of its keeper")
def _(_outside: Outside) -> Any:
    return os.getppid() > 0 and bool(open(f"/proc/{os.getppid()}/environ").read(16))


def _trace(outside: Outside) -> None:
    called(outside, "ptrace", _PTRACE_SEIZE, server_of(outside), 0, 0)
    called(outside, "ptrace", _PTRACE_DETACH, server_of(outside), 0, 0)


def _schedule(pid: int) -> None:
    os.sched_setscheduler(pid, os.sched_getscheduler(pid), os.sched_getparam(pid))


def _let_disk_wait(pid: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 251, "aarch64": 30}[os.uname().machine]
    return bool(libc.syscall(number, 1, pid, (2 << 13) | 4) == 0)


def _be_last(_outside: Outside) -> None:
    with open("/proc/self/oom_score_adj", "r+") as file:
        lower = max(int(file.read()) - 1, -1000)
        file.seek(0)
        file.write(str(lower))


WAYS.update(
    {
        "signal the server": _on_server(lambda pid: os.kill(pid, 0)),
        "get hold of the server to signal it": _on_server(lambda pid: signal.pidfd_send_signal(os.pidfd_open(pid), 0)),
        "trace the server": _trace,
        "read the memory of the server": lambda outside: called(
            outside, "process_vm_readv", server_of(outside), None, 0, None, 0, 0
        ),
        "take a descriptor of the server": lambda outside: called(
            outside, "pidfd_getfd", os.pidfd_open(server_of(outside)), 0, 0
        ),
        "compare itself with the server": lambda outside: called(
            outside, "kcmp", os.getpid(), server_of(outside), 1, 0, 0
        ),
        "read the limits of the server": _on_server(lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE)),
        "limit the CPU time of the server": _on_server(
            lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU, resource.prlimit(pid, resource.RLIMIT_CPU))
        ),
        "take priority from the server": _on_server(
            lambda pid: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
        ),
        "schedule the server": _on_server(_schedule),
        "take processors from the server": _on_server(lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(pid))),
        "let the disk work for the server later": _on_server(_let_disk_wait),
        "let the server be killed first when memory is short": _on_server(
            lambda pid: os.close(os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY))
        ),
        "be the last that is killed when memory is short": _be_last,
        "go before others": lambda _: in_a_child(lambda: os.nice(-1) and None),
        "go before everything": lambda _: in_a_child(
            lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        ),
        "lock memory without a limit": lambda _: in_a_child(
            lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1))
        ),
    }
)
