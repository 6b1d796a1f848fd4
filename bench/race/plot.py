"""The race as a drawing: bars for each entrant, ours in another colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.race.peers import FLOOR, OURS, Entrant
from bench.race.table import Cells, Column

_COLOURS = {OURS.name: "tab:orange", FLOOR.name: "tab:grey"}
_OTHERS = "tab:blue"


def draw(
    entrants: Sequence[Entrant],
    shown: Sequence[Column],
    cells: Cells,
    *,
    versions: Mapping[str, str],
    facts: str,
    file: Path,
) -> str:
    """Draw the file; returns what to tell of it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return f"{file.name} was not drawn: install matplotlib (pip install '.[bench]')."
    shown = [column for column in shown if any(column.found(cells, each.name) for each in entrants)]
    rows = (len(shown) + 2) // 3
    figure = Figure(figsize=(15, 3.2 * rows), layout="constrained")
    places = figure.subplots(rows, 3).flat
    for place, column in zip(places, shown, strict=False):
        names, values, texts = [], [], []
        for entrant in reversed(entrants):
            names.append(f"{entrant.name} {versions.get(entrant.name, '')}".strip())
            value, text = column.found(cells, entrant.name), column.shown(cells, entrant.name)
            values.append(value or 0.0)
            texts.append(text if value else "")
            if not value:  # on a scale of logarithms there is no place for it
                place.text(
                    0.01, (len(names) - 0.5) / len(entrants), text, transform=place.transAxes, va="center", fontsize=8
                )
        colours = [_COLOURS.get(entrant.name, _OTHERS) for entrant in reversed(entrants)]
        bars = place.barh(names, values, color=colours)
        place.bar_label(bars, texts, padding=3, fontsize=8)
        if max(values) > 20 * min((value for value in values if value > 0), default=1.0):
            place.set_xscale("symlog" if column.worst else "log")
        place.set_title(column.heading + (" ↑" if column.more_is_better else ""), fontsize=10)
        place.tick_params(labelsize=8)
        place.margins(x=0.2)
        place.set_ylim(-0.5, len(entrants) - 0.5)
    for place in list(figure.axes)[len(shown) :]:
        place.set_visible(False)
    figure.suptitle(f"{facts}. Less is better but where the heading has ↑; -: takes no part", fontsize=8)
    figure.savefig(file, dpi=100)
    return f"{file.name} drawn."
