"""What a test leaves behind: processes that still run, sockets and pipes that are still open."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_OPEN_FILES = "/proc/self/fd"
_TASKS = "/proc/self/task"
lingering_seconds = 10.0
"""How long what is about to end may take: other processes and threads have to come to their turn."""
_KINDS = ("socket:", "pipe:")


class Held(NamedTuple):
    """The children of this process by their number, and its sockets and pipes by what the kernel calls them."""

    processes: Mapping[int, str]
    channels: Mapping[str, int]

    def beyond(self, *others: Held) -> Held:
        """What is held here and in none of the others."""
        processes = {pid: what for pid, what in self.processes.items() if not any(pid in each[0] for each in others)}
        channels = {
            what: number for what, number in self.channels.items() if not any(what in each[1] for each in others)
        }
        return Held(processes, channels)

    def __bool__(self) -> bool:
        return bool(self.processes or self.channels)

    def __str__(self) -> str:
        processes = [f"process {pid} ({command})" for pid, command in self.processes.items()]
        return ", ".join(processes + [f"{what} {_address(number)}".strip() for what, number in self.channels.items()])


NOTHING = Held({}, {})


def held() -> Held:
    """What this process holds now; nothing on a system that does not tell."""
    if not os.path.exists(_OPEN_FILES):
        return NOTHING
    channels: dict[str, int] = {}
    for name in os.listdir(_OPEN_FILES):
        with contextlib.suppress(OSError):  # closed meanwhile
            what = os.readlink(f"{_OPEN_FILES}/{name}")
            if what.startswith(_KINDS):
                channels[what] = int(name)
    return Held(children(), channels)


def children() -> dict[int, str]:
    """What the children of this process run, by their number; none that has ended."""
    found: dict[int, str] = {}
    for task in os.listdir(_TASKS) if os.path.exists(_TASKS) else ():
        # The thread may have ended, and not every kernel tells.
        with contextlib.suppress(OSError), open(f"{_TASKS}/{task}/children") as listed:
            found.update({int(pid): command for pid in listed.read().split() if (command := _command(pid))})
    return found


def left_since(before: Held, *, except_for: Held = NOTHING) -> Held:
    """What was not held before and stays, though what is about to end has time to do so."""
    deadline = time.monotonic() + lingering_seconds
    while (left := held().beyond(before, except_for)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def collect_what_came_since(before: Held) -> None:
    """Let Python warn now of what nobody refers to, so that it is an error of whoever left it."""
    if held().beyond(before):
        _forget_the_last_exception()
        gc.collect()


def end(left: Held) -> None:
    """End the processes and close the sockets, so that no later test is blamed for them."""
    for pid in left.processes:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    numbers = set(left.channels.values())
    for each in gc.get_objects():
        if isinstance(each, socket.socket) and each.fileno() in numbers:
            each.close()


def _command(pid: str) -> str:
    """What a process runs; empty if it has ended."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(") ")
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    told = " ".join(arguments.replace(b"\0", b" ").decode(errors="replace").split()) or name  # it may just be starting
    return "" if rest[0] in "ZX" else told[:200]


def _forget_the_last_exception() -> None:
    """A test that failed is kept with all its variables, for whoever would look at them in a debugger."""
    for name in ("last_exc", "last_value", "last_traceback", "last_type"):
        if hasattr(sys, name):
            delattr(sys, name)


def _address(number: int) -> str:
    try:
        with socket.socket(fileno=os.dup(number)) as copy:
            own = copy.getsockname()
            with contextlib.suppress(OSError):
                return f"from {own} to {copy.getpeername()}" if own else "of a pair"
            return f"at {own}"
    except OSError:
        return ""
