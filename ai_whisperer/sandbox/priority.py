"""Lets the programs of tools come after the server where processors are scarce."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from ai_whisperer.sandbox.libc import libc

_NICENESS = 10
_HAS_LEFT = (errno.ENOENT, errno.ESRCH)
_PROC = Path("/proc")
_PR_CAPBSET_DROP = 24
_CAP_SYS_NICE = 23


def step_back(session: Sequence[int]) -> bool:
    """Let these processes of one session come after the server; False if it has to be tried again a little later.

    Where the kernel shares out among sessions first (`sched_autogroup_enabled`), niceness alone counts only between
    processes of the same one, so the session steps back too. Not every user may do that ten times a second.
    """
    for pid in session:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, pid)))
    for pid in session:
        try:
            (_PROC / str(pid) / "autogroup").write_text(str(_NICENESS))
        except OSError as error:
            if error.errno in _HAS_LEFT:
                continue  # any other of them speaks for the session as well
            return error.errno != errno.EAGAIN
        return True
    return not (_PROC / "sys/kernel/sched_autogroup_enabled").exists()


def give_up_urgency() -> None:
    """Keep the programs that this process starts from going before others, or before everything, even as root."""
    libc.prctl(_PR_CAPBSET_DROP, _CAP_SYS_NICE, 0, 0, 0)


def go_first() -> None:
    """Let this process, but none that it starts, come before all others, if it may: what it does is short."""
    with contextlib.suppress(OSError):
        urgent = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, urgent)
