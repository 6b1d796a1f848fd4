"""What the package adds to the start of a bare interpreter, in processor time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from bench.probe import REPOSITORY, Probe, ProbeError, Sample, Samples, values_of
from bench.report import Figure, Target

TITLE = "import"

_PROGRAMS = {
    "bare": ("-c", "pass"),
    "libraries": ("-c", "import asyncio, msgspec, apsw"),
    "package": ("-c", "import ai_whisperer"),
    "manager": ("-c", "from ai_whisperer import AsyncAgentSessionManager"),
    "help": ("-m", "ai_whisperer", "--help"),
}
_STARTS = 15


def probes(*, quick: bool) -> list[Probe]:
    starts = _STARTS // 3 if quick else _STARTS
    return [Probe("import", lambda _: _start_in_turn(starts))]


def figures(samples: Samples) -> list[Figure]:
    bare, libraries, package, manager, shown = (values_of(samples, "import", name) for name in _PROGRAMS)
    target = Target(2.5, of="raw")
    return [
        Figure("of ai_whisperer (raw: bare Python)", "ms", package, raw=bare, target=target),
        Figure("of the session manager (floor: the libraries)", "ms", manager, raw=bare, floor=libraries),
        Figure("`whisperer --help`", "ms", shown, raw=bare),
    ]


def _start_in_turn(starts: int) -> Sample:
    """The median of so many starts of each, taken in turn."""
    taken: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    for _ in range(starts):
        for name, arguments in _PROGRAMS.items():
            taken[name].append(_start(arguments))
    return {name: statistics.median(times) for name, times in taken.items()}


def _start(arguments: tuple[str, ...]) -> float:
    """The milliseconds of processor time that a new interpreter takes."""
    program = subprocess.Popen([sys.executable, *arguments], cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise ProbeError(f"{arguments} ended with {program.returncode}.")
    return (used.ru_utime + used.ru_stime) * 1000
