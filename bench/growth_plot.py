"""The tables of W10 as text and as a drawing: each cost in proportion to what it is at the smallest size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Table = Mapping[int, Mapping[str, float]]
"""The values of each size by name."""

_FLAT = 1.3
_FACTS = ("ai_whisperer", "python", "sqlite", "apsw", "system", "processor", "cores")


def printed(title: str, table: Table) -> str:
    """The table as aligned text, with how much each value has grown from the smallest size to the largest."""
    names = list(next(iter(table.values())))
    width = max(map(len, (title, *names)))
    lines = [f"\n{title:<{width}}" + "".join(f"{size:>12,}" for size in table) + "    last ÷ first"]
    for name in names:
        values = [sample[name] for sample in table.values()]
        lines.append(f"{name:<{width}}" + "".join(f"{value:>12,.3f}" for value in values) + f"{_growth(values):>16.2f}")
    return "\n".join(lines)


def drawn(tables: Mapping[str, Table], *, facts: Mapping[str, Any], file: Path) -> str:
    """Draw the file; returns what to tell of it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"\n{file.name} was not drawn: install matplotlib (pip install '.[bench]')."
    figure = Figure(figsize=(15, 5), layout="constrained")
    for place, (title, table) in zip(figure.subplots(1, len(tables)), tables.items(), strict=True):
        sizes = list(table)
        for name, first in table[sizes[0]].items():
            if first:
                place.plot(sizes, [table[size][name] / first for size in sizes], marker="o", label=name)
        place.axhline(_FLAT, color="grey", linestyle=":", linewidth=1)
        place.set(xscale="log", yscale="log", xlabel=title, ylabel="in proportion to the smallest")
        place.set_ylim(bottom=0.5, top=max(10.0, place.get_ylim()[1]))
        place.legend(fontsize=7)
    figure.suptitle(", ".join(f"{name} {facts[name]}" for name in _FACTS if name in facts), fontsize=8)
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=100)
    return f"\n{file.name} drawn."


def _growth(values: list[float]) -> float:
    return values[-1] / values[0] if values[0] else 0.0
