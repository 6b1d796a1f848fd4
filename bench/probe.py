"""One measurement, taken in a process of its own so that neither memory nor warm caches carry over to the next."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent

Sample = Mapping[str, float]
"""What one measurement brought: values by name."""

Samples = Mapping[str, Sequence[Sample]]
"""The samples of each probe, in the order of the rounds."""

_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Probe:
    """A measurement that is taken once in each round; `take` gets an empty folder."""

    name: str
    take: Callable[[Path], Sample]


class ProbeError(Exception):
    """A measurement did not come to its end, so that there is nothing to report."""


def in_fresh_process(function: Callable[..., Any], **values: Any) -> Callable[[Path], Sample]:
    """A measurement that calls `function(folder, **values)`, plain or async, in a new interpreter."""
    return partial(_run, f"{function.__module__}:{function.__name__}", values)


def command(function: str, folder: Path, values: Mapping[str, Any]) -> list[str]:
    """The command line on which `bench.child` calls the function."""
    return [sys.executable, "-m", "bench.child", function, str(folder), json.dumps(values)]


def values_of(samples: Samples, probe: str, value: str) -> list[float]:
    """One value of one probe, round by round."""
    return [sample[value] for sample in samples[probe]]


class Stopwatch:
    """Wall time and the processor time of all threads of this process, from when it was made."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def read(self) -> tuple[float, float]:
        """Wall seconds and processor seconds so far."""
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


def _run(function: str, values: Mapping[str, Any], folder: Path) -> Sample:
    child = subprocess.run(
        command(function, folder, values),
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    if child.returncode != 0:
        raise ProbeError(f"{function} {values} failed:\n{child.stderr}")
    return sample_from(child.stdout)


def sample_from(output: str) -> Sample:
    """The sample that `bench.child` printed."""
    sample: dict[str, float] = json.loads(output.splitlines()[-1])
    return sample
