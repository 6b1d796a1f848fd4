"""`python -m bench.instructions`: how many instructions the hot paths take, beside the numbers that are kept.

A count is exact where a time is not: it is the same on a busy machine. Each path is run in two lengths under callgrind,
and the difference is divided by the work that the longer one did more, so that starting and closing are not in it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from bench.probe import REPOSITORY, ProbeError, command

KEPT = REPOSITORY / "bench" / "instructions.json"
ALLOWED_GROWTH = 0.02
_TIMEOUT_SECONDS = 600
_COLLECTED = re.compile(r"^==\d+== Collected : (\d+)", re.MULTILINE)
_UPDATE = "make instructions UPDATE=1"
_NO_VALGRIND = (
    "Instructions are counted by callgrind, and there is no `valgrind` here. "
    "Install it (Debian's package has that name) and run this again."
)

Counts = Mapping[str, int]
"""Instructions for one piece of work, by the name of the path."""


@dataclass(frozen=True, kw_only=True)
class HotPath:
    """A function of a workload, the value that makes it longer, and how much work is in one of that."""

    name: str
    function: str
    values: Mapping[str, Any]
    grows: str
    short: int
    long: int
    work: int = 1

    def values_for(self, length: int) -> dict[str, Any]:
        return {"function": self.function, "values": {**self.values, self.grows: length}}

    def each(self, short: int, long: int) -> int:
        """What one piece of work takes, of the counts of both lengths."""
        return round((long - short) / ((self.long - self.short) * self.work))


_AGENTS = 25
HOT_PATHS = (
    HotPath(
        name="task of five steps, durable",
        function="bench.w2_tasks:ours_tasks",
        values={"agents": _AGENTS, "durable": True},
        grows="rounds",
        short=2,
        long=6,
        work=_AGENTS,
    ),
    HotPath(
        name="task of five steps, in memory",
        function="bench.w2_tasks:ours_tasks",
        values={"agents": _AGENTS, "durable": False},
        grows="rounds",
        short=2,
        long=6,
        work=_AGENTS,
    ),
    HotPath(
        name="mail accepted",
        function="bench.w1_messages:ours_accepts",
        values={"senders": 50},
        grows="mails",
        short=4,
        long=24,
        work=50,
    ),
    HotPath(
        name="mail handled as a task",
        function="bench.w1_messages:ours_handle",
        values={"durable": True},
        grows="mails",
        short=1,
        long=3,
        work=100,
    ),
    HotPath(
        name="agent created, started and closed",
        function="bench.w3_agents:ours_agents",
        values={"tools": "own", "memory": "resident"},
        grows="agents",
        short=50,
        long=250,
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print(_NO_VALGRIND, file=sys.stderr)
        return 2
    try:
        counts = count_all(valgrind, jobs=given.jobs)
    except ProbeError as error:
        print(f"A count failed, so nothing was compared. {error}", file=sys.stderr)
        return 2
    if given.update:
        _keep(counts)
        print(table(counts, {}) + f"\nKept in {KEPT.name}.")
        return 0
    kept = _kept().get(setup(), {})
    print(table(counts, kept))
    grown, sentence = verdict(counts, kept)
    print(sentence)
    return 1 if grown else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep what is counted now")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many runs at the same time")
    return parser


def setup() -> str:
    """What the counts hold for: another interpreter or binding takes other instructions for the same work."""
    libraries = " ".join(f"{name} {metadata.version(name)}" for name in ("apsw", "msgspec"))
    return f"{platform.python_implementation()} {platform.python_version()} {platform.machine()} {libraries}"


def verdict(counts: Counts, kept: Counts) -> tuple[list[str], str]:
    """The paths that grew too much, and what is to be done."""
    grown = [name for name, count in counts.items() if name in kept and _growth(count, kept[name]) > ALLOWED_GROWTH]
    if grown:
        return grown, (
            f"Too many instructions: {', '.join(grown)}. Find what the change added "
            f"(valgrind --tool=callgrind, or cProfile) and take it back. If it has to cost that: {_UPDATE}, "
            "and say in the commit what it buys."
        )
    if missing := [name for name in counts if name not in kept]:
        return [], f"Nothing is kept for {', '.join(missing)} with {setup()}. To keep these numbers: {_UPDATE}."
    if less := [name for name, count in counts.items() if _growth(count, kept[name]) < -ALLOWED_GROWTH]:
        return [], f"Fewer instructions: {', '.join(less)}. So that this stays: {_UPDATE}."
    return [], "No hot path grew."


def table(counts: Counts, kept: Counts) -> str:
    lines = [f"{'instructions, ' + setup():<60}{'kept':>12}{'now':>12}{'':>9}"]
    for name, count in counts.items():
        before, change = (f"{kept[name]:,}", f"{_growth(count, kept[name]):+.1%}") if name in kept else ("", "")
        lines.append(f"{name:<60}{before:>12}{count:>12,}{change:>9}")
    return "\n".join(lines)


def count_all(valgrind: str, *, jobs: int) -> Counts:
    """Run every path in both lengths, each in a process of its own, so many at the same time."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        code = Path(place) / "byte code"
        run = partial(_count, valgrind, Path(place), code)
        for path in HOT_PATHS:  # the byte code is compiled before it is counted
            _child([], Path(place) / "warm" / path.name, path.values_for(path.short), code)
        with ThreadPoolExecutor(max_workers=jobs) as workers:
            runs = [
                (path, workers.submit(run, path, path.short), workers.submit(run, path, path.long))
                for path in HOT_PATHS
            ]
            return {path.name: path.each(short.result(), long.result()) for path, short, long in runs}


async def counted(folder: Path, *, function: str, values: Mapping[str, Any]) -> Any:
    """Call the function of a workload, with what was imported out of the garbage collector's sight.

    A collection that looks at all modules costs as much as ten tasks, and a small change moves it from one length into
    the other.
    """
    module, _, name = function.partition(":")
    called = getattr(import_module(module), name)
    gc.collect()
    gc.freeze()
    return await called(folder, **values)


def collected(output: str) -> int:
    """The number of instructions that callgrind says it has seen."""
    found = _COLLECTED.search(output)
    if found is None:
        raise ProbeError(f"callgrind told no number of instructions:\n{output}")
    return int(found[1])


def _count(valgrind: str, place: Path, code: Path, path: HotPath, length: int) -> int:
    under = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    folder = place / str(length) / path.name
    return collected(_child(under, folder, path.values_for(length), code))


def _child(under: list[str], folder: Path, values: Mapping[str, Any], code: Path) -> str:
    folder.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.run(
        [*under, *command(f"{__spec__.name}:counted", folder, values)],
        check=False,
        cwd=REPOSITORY,
        env=environment | {"PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": str(code)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    if child.returncode != 0:
        raise ProbeError(f"{values} failed:\n{child.stderr}")
    return child.stderr


def _growth(now: int, before: int) -> float:
    return now / before - 1


def _kept() -> dict[str, dict[str, int]]:
    kept: dict[str, dict[str, int]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return kept


def _keep(counts: Counts) -> None:
    kept = _kept() | {setup(): dict(counts)}
    KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
