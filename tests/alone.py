"""Runs a command, and ends what it leaves running: `python -m tests.alone COMMAND …`.

Whatever the command starts becomes a child of this process when its own parent ends, even in a session of its own, so
nothing outlives the tests, however they ended. A command that leaves something running has failed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.leaks import children, lingering_seconds

_PR_SET_CHILD_SUBREAPER = 36


def run(command: Sequence[str]) -> int:
    """The exit code of the command, or 1 if it had no fault but to leave something running."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    told: list[int] = []
    running: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: object) -> None:
        told.append(number)
        for each in running:
            each.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    signal.signal(signal.SIGINT, lambda *_: None)  # the terminal tells the command too
    running.append(subprocess.Popen(command))
    for heard in told:  # while it was started
        running[0].send_signal(heard)
    running[0].returncode = code = _ended(running[0].pid)
    left = _left()
    for each in left:
        sys.stderr.write(f"Left running, and ended now: {each}\n")
    return code or bool(left)


def _ended(pid: int) -> int:
    """Wait for the end of the process, and bury all others that end meanwhile."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _left() -> list[str]:
    """End the processes that are still there after a while; returns what they were."""
    deadline = time.monotonic() + lingering_seconds
    while _are_some_left() and time.monotonic() < deadline:
        time.sleep(0.01)
    left: dict[int, str] = {}
    while _are_some_left():  # the children of those that were ended come here too
        for pid, command in children().items():
            left.setdefault(pid, f"{command} (process {pid}{_test_of(pid)})")
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return list(left.values())


def _are_some_left() -> bool:
    """Bury who has ended; returns whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _test_of(pid: int) -> str:
    """The test that was running when the process was started, if it still knows."""
    name = b"PYTEST_CURRENT_TEST="
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if each.startswith(name):
                return f", started by {each.removeprefix(name).decode(errors='replace')}"
    return ""


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
