"""Figures: what was measured, against what, and whether it is good enough; as a table and as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw

import ai_whisperer


@dataclass(frozen=True)
class Target:
    """A bound on our value itself or on its ratio to the raw limit."""

    limit: float
    at_least: bool = False
    of: Literal["itself", "raw"] = "itself"

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        bound = f"{'≥' if self.at_least else '≤'} {_short(self.limit)}"
        return bound if self.of == "itself" else f"{bound} of raw"


@dataclass(frozen=True)
class Figure:
    """Our values, one a round, beside those of the floor and of the raw limit in the same rounds.

    `typical` makes one value of several: the median, or the worst where a single case is one too many. Ratios are
    taken within each round, so that a slow moment of the machine weighs on both sides.
    """

    name: str
    unit: str
    ours: Sequence[float]
    floor: Sequence[float] = ()
    raw: Sequence[float] = ()
    target: Target | None = None
    typical: Callable[[Sequence[float]], float] = statistics.median

    def ratio_to(self, other: Sequence[float]) -> float | None:
        """Ours in proportion to the other; None if there is no other, or for counts of cases."""
        if self.typical is max or not other:
            return None
        return statistics.median(mine / theirs for mine, theirs in zip(self.ours, other, strict=True))

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None if there is none."""
        if self.target is None:
            return None
        value = self.typical(self.ours) if self.target.of == "itself" else self.ratio_to(self.raw)
        return value is not None and self.target.is_met(value)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": self.typical(self.ours),
            "floor": self.typical(self.floor) if self.floor else None,
            "raw": self.typical(self.raw) if self.raw else None,
            "ratio_to_floor": self.ratio_to(self.floor),
            "ratio_to_raw": self.ratio_to(self.raw),
            "target": None if self.target is None else str(self.target),
            "met": self.is_met,
            "rounds": {"ours": list(self.ours), "floor": list(self.floor), "raw": list(self.raw)},
        }


_HEADINGS = ("figure", "unit", "raw", "floor", "ours", "min … max", "÷ raw", "÷ floor", "target", "met")
_VERDICTS = {True: "yes", False: "NO", None: ""}


def table(figures_by_workload: Mapping[str, Sequence[Figure]]) -> str:
    """All figures as aligned text."""
    lines: list[tuple[str, ...]] = [_HEADINGS]
    lines += [_cells(title, figure) for title, figures in figures_by_workload.items() for figure in figures]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
    return "\n".join([shown[0], "  ".join("-" * width for width in widths), *shown[1:]])


def machine_facts(folder: Path) -> dict[str, Any]:
    """What the figures depend on, apart from the code."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "ai_whisperer": ai_whisperer.__version__,
        "file_system": _file_system_of(folder),
        "load_average": list(os.getloadavg()),
    }


def _cells(title: str, figure: Figure) -> tuple[str, ...]:
    def typical(values: Sequence[float]) -> str:
        return _short(figure.typical(values)) if values else ""

    def ratio(other: Sequence[float]) -> str:
        found = figure.ratio_to(other)
        return "" if found is None else _short(found)

    return (
        f"{title} {figure.name}",
        figure.unit,
        typical(figure.raw),
        typical(figure.floor),
        typical(figure.ours),
        f"{_short(min(figure.ours))} … {_short(max(figure.ours))}",
        ratio(figure.raw),
        ratio(figure.floor),
        str(figure.target or ""),
        _VERDICTS[figure.is_met],
    )


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    numbers = range(_HEADINGS.index("raw"), _HEADINGS.index("target"))
    return [
        cell.rjust(width) if index in numbers else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _short(value: float) -> str:
    """Three or four digits that matter, large numbers whole."""
    if value == int(value) and abs(value) < 1_000:
        return str(int(value))
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{4 if abs(value) >= 1 else 3}g}"


def _file_system_of(folder: Path) -> str:
    """The type of the file system that holds the folder: on one in memory a sync costs nothing."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    resolved = folder.resolve()
    holding = [mount for mount in mounts if resolved.is_relative_to(mount[1])]
    return max(holding, key=lambda mount: len(mount[1]))[2] if holding else "unknown"
