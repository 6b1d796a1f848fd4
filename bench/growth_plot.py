"""Draws the tables of `bench.growth`: each cost in proportion to what it is at the smallest size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Tables = Mapping[str, Mapping[int, Mapping[str, float]]]


def draw(tables: Tables, file: Path) -> str:
    """Draw the file; returns what to tell of it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"{file.name} was not drawn: install matplotlib (pip install '.[bench]')."
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    for place, (title, table) in zip(figure.subplots(1, len(tables)), tables.items(), strict=True):
        sizes = list(table)
        for name in table[sizes[0]]:
            first = table[sizes[0]][name]
            if first:
                place.plot(sizes, [table[size][name] / first for size in sizes], marker="o", label=name)
        place.axhline(1.3, color="grey", linestyle=":", linewidth=1)
        place.set(xscale="log", yscale="log", xlabel=title, ylabel="in proportion to the smallest")
        place.legend(fontsize=7)
    figure.savefig(file, dpi=100)
    return f"{file.name} drawn."
