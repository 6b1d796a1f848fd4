"""All processes of a job, found through their parents: what they take, and how to end every one of them.

This process is their subreaper: a child whose parent ends becomes a child of this process, wherever it has gone by
`setsid` or a second fork. So as long as anything of the job lives, this process has a child.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ai_whisperer.domain.record import Record
from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox.libc import libc

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_END_SECONDS = 20.0


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a job take together."""

    processes: int
    threads: int
    cpu_seconds: float
    memory_bytes: int
    sessions: Mapping[int, Sequence[int]]
    """The processes, by the session that they are in."""


class Used(Record, frozen=True, kw_only=True):
    """What the processes of a job took, as far as it is known when all have ended; else 0.

    `largest_bytes` is the most memory that one of them had, `bound_bytes` what none had more of.
    """

    largest_bytes: int = 0
    bound_bytes: int = 0
    cpu_seconds: float = 0.0


def adopt_orphans() -> None:
    """Become the subreaper; raises `SandboxError` where the kernel does not let children be found."""
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 or not Path("/proc/thread-self/children").exists():
        raise SandboxError(
            "This kernel cannot tell which processes a tool has started, so they could not be ended for certain. It "
            "needs Linux with /proc and CONFIG_PROC_CHILDREN."
        )


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends."""
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def descendants(most: int) -> list[int]:
    """The processes below this one, each before those that it started; not many more than `most` are looked for."""
    found: list[int] = []
    unseen = [os.getpid()]
    while unseen and len(found) <= most:
        below = children(unseen.pop())
        found += below
        unseen += below
    return found


def children(pid: int) -> list[int]:
    """The processes that this one has started, or taken in; none if it is gone."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it is gone
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found


def taken(enough_bytes: int, most: int, *, besides: int = 0) -> Taken:
    """What the job takes now. Memory is counted exactly only if it may be more than `enough_bytes`.

    If there are more than `most` processes, only some are looked at: a look must not take long. Of the process
    `besides`, which is none of the job, only the CPU time counts.
    """
    cpu = cpu_of_ended()
    count = threads = 0
    memory: dict[int, int] = {}
    sessions: dict[int, list[int]] = {}
    for pid in descendants(most):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            cpu += sum(map(int, fields[11:15])) / _TICKS
            sessions.setdefault(int(fields[3]), []).append(pid)
            if pid == besides:
                continue
            count += fields[0] != b"Z"
            threads += int(fields[17])
            memory[pid] = int(fields[21]) * _PAGE
    total = sum(memory.values())
    if total > enough_bytes:
        total = sum(_own_share(pid, resident) for pid, resident in memory.items())
    return Taken(processes=count, threads=threads, cpu_seconds=cpu, memory_bytes=total, sessions=sessions)


def cpu_of_ended() -> float:
    """The CPU seconds of those that have ended and were waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def cpu_of_this() -> float:
    """The CPU seconds of this process itself."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def used_by_ended() -> Used:
    """What those took that have ended and were waited for."""
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    is_their_own = most > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # not what they had when they were forked
    return Used(largest_bytes=most << 10 if is_their_own else 0, bound_bytes=most << 10, cpu_seconds=cpu_of_ended())


def _own_share(pid: int, resident: int) -> int:
    """What a process has for itself: pages that several have in common are shared out among them."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
        return 0
    return resident


def reap_orphans(main: int) -> None:
    """Bury those that ended and became children of this process; the main one is left to who waits for it."""
    for pid in children(os.getpid()):
        if pid != main:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def end_all() -> None:
    """Kill every process below this one and return when there is none left: the kernel says so.

    Raises `SandboxError` if they do not end, or cannot be found.
    """
    pause = 0.0005
    give_up = time.monotonic() + _END_SECONDS
    while not _none_left():
        kill_with_all_below(children(os.getpid()))
        if time.monotonic() > give_up:
            raise SandboxError(
                f"Processes of the program did not end within {_END_SECONDS:g} s after they were killed, or could not "
                "be found. Look for them with ps."
            )
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def kill_with_all_below(first: Sequence[int]) -> None:
    """Kill these first of all, and then what is below them, each before those that it started.

    What is killed starts no other, and with an init all in its namespace die: so there is no look at anything before.
    """
    for pid in first:
        _kill(pid)
    unseen = list(first)
    while unseen:
        for pid in children(unseen.pop()):
            _kill(pid)
            unseen.append(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # one that has become another user is out of reach
        os.kill(pid, signal.SIGKILL)


def end_namespace() -> bool:
    """Kill all in the namespace whose init this process is, and return when there is none left; else return False.

    None can be missed: a process on which the signal falls in the midst of a fork does not fork, and whose parent has
    ended becomes a child of the init.
    """
    if os.getpid() != 1:
        return False
    with contextlib.suppress(ProcessLookupError):  # there is none
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    return True


def _none_left() -> bool:
    """Bury those that have ended; returns whether this process has no child any more, alive or dead."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
