"""What `import ai_whisperer` adds to the start of a bare interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from bench.probe import REPOSITORY, Probe, Sample, Samples, values_of
from bench.report import Figure, Target

TITLE = "import"

_STATEMENTS = {
    "bare": "pass",
    "package": "import ai_whisperer",
    "manager": "from ai_whisperer import AsyncAgentSessionManager",
}
_STARTS = 15


def probes(*, quick: bool) -> list[Probe]:
    starts = _STARTS // 3 if quick else _STARTS
    return [Probe("import", lambda _: _start_in_turn(starts))]


def figures(samples: Samples) -> list[Figure]:
    bare, package, manager = (values_of(samples, "import", name) for name in _STATEMENTS)
    target = Target(2.5, of="raw")
    return [
        Figure("of ai_whisperer (raw: bare Python)", "ms", package, raw=bare, target=target),
        Figure("of the session manager", "ms", manager, raw=bare),
    ]


def _start_in_turn(starts: int) -> Sample:
    """The median of so many starts of each, taken in turn."""
    taken: dict[str, list[float]] = {name: [] for name in _STATEMENTS}
    for _ in range(starts):
        for name, statement in _STATEMENTS.items():
            taken[name].append(_start(statement))
    return {name: statistics.median(times) for name, times in taken.items()}


def _start(statement: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=REPOSITORY, check=True)
    return (time.perf_counter() - begin) * 1000
