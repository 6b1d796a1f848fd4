"""One lap: one entrant does one workload of one size once, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.probe import REPOSITORY, ProbeError, Sample, sample_from
from bench.race.course import STEPS
from bench.race.peers import RESTART, Entrant
from bench.witness import witness_command

CAP_SECONDS = 60
"""Processor time after which a lap is ended."""
_WALL_CAP_SECONDS = 2 * CAP_SECONDS
_LOOK_SECONDS = 0.5
_FAILED = re.compile(r"^\d+ failed, one of them with .*", re.MULTILINE)
"""What the course says when some of what was to be done at the same time failed."""
_ERROR = re.compile(r"[\w.]+(Error|Exception)\b")


class TooLongError(ProbeError):
    """The lap was ended because it took too long."""


def lap(entrant: Entrant, python: str, workload: str, size: int, folder: Path) -> Sample:
    """What the entrant printed, or for a restart what the witness saw. Raises `ProbeError` if it did not end well."""
    if workload == RESTART:
        return _restart(entrant, python, size, folder)
    with subprocess.Popen(
        command(entrant, python, workload, size, folder),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        output, said = _watched(process)
    if process.returncode != 0:
        raise ProbeError(_last_line(said))
    if failed := _FAILED.search(said):
        print(f"{entrant.name}, {workload} {size}: {failed[0]}", file=sys.stderr)
    return sample_from(output)


def command(
    entrant: Entrant, python: str, workload: str, size: int, folder: Path, *, pipe: int | None = None
) -> list[str]:
    """The command line of the protocol that is described in `course`."""
    told = [] if pipe is None else [str(pipe)]
    return [python, "-m", entrant.module, workload, str(size), str(folder), *told]


def _restart(entrant: Entrant, python: str, size: int, folder: Path) -> Sample:
    """Kill the process when half of the steps have ended, start it again, and count what it did twice or not at all."""

    def phase(name: str) -> Callable[[int], Sequence[str]]:
        return lambda pipe: command(entrant, python, f"{RESTART}-{name}", size, folder, pipe=pipe)

    before = witness_command(
        phase("begin"), name=entrant.name, kill_at=size * STEPS // 2, timeout_seconds=_WALL_CAP_SECONDS
    )
    after = witness_command(phase("again"), name=entrant.name, kill_at=None, timeout_seconds=_WALL_CAP_SECONDS)
    ended = set(before.finished)
    began = set(before.started)
    twice = [step for step in after.started if step in began]
    return {
        "tasks_lost": size - sample_from(after.output)["done"],
        "steps_before": len(ended),
        "steps_repeated": sum(step in ended for step in twice),
        "steps_open_repeated": sum(step not in ended for step in twice),
        "steps_lost": size * STEPS - len(began.union(after.started)),
        "first_step_seconds": after.first_step_at - after.began_at,
        "first_step_cpu": after.first_step_cpu,
        "opening_seconds": after.first_step_at - after.opening_at,
    }


def _watched(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What the process wrote. Raises `TooLongError` when it was ended.

    The system's own limit is not used: under it the clock of processor time goes in steps of milliseconds.
    """
    begin = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            cpu = _cpu_seconds(process.pid)
        if cpu > CAP_SECONDS or time.monotonic() - begin > _WALL_CAP_SECONDS:
            process.kill()
            process.communicate()
            raise TooLongError(f"> {CAP_SECONDS} s of CPU" if cpu > CAP_SECONDS else f"> {_WALL_CAP_SECONDS} s")


def _cpu_seconds(process_id: int) -> float:
    """The processor time of a process so far, or none if it has ended."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _last_line(text: str) -> str:
    """The last line that names an error, or the last one at all."""
    lines = [line for line in text.strip().splitlines() if line and not line.startswith(" ")]
    named = [line for line in lines if _ERROR.match(line)]
    return (named or lines or ["it said nothing"])[-1]
