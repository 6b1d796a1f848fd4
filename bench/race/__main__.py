"""`python -m bench.race`: every entrant over every workload, in turn, and one table and one plot of it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.probe import REPOSITORY, ProbeError
from bench.race import budgets, environments, page, plot, table
from bench.race.course import PAIRS
from bench.race.kept import Kept, OtherRaceError, Sizes
from bench.race.laps import TooLongError, lap
from bench.race.peers import ENTRANTS, HAVE_HANDLERS, RESTART, Entrant
from bench.race.table import Cell

RESULTS = REPOSITORY / "bench" / "results"
SIZES: Sizes = {
    "messages-memory": (20 * PAIRS,),
    "messages-durable": (20 * PAIRS,),
    "bare-memory": (20 * PAIRS,),
    "bare-durable": (20 * PAIRS,),
    "tasks-memory": (10, 100, 1000),
    "tasks-durable": (10, 100, 1000),
    "agents-made": (1000,),
    "agents-used": (1000,),
    RESTART: (100,),
}
QUICK_SIZES: Sizes = {
    **dict.fromkeys(("messages-memory", "messages-durable", "bare-memory", "bare-durable"), (4 * PAIRS,)),
    **dict.fromkeys(("tasks-memory", "tasks-durable"), (10,)),
    **dict.fromkeys(("agents-made", "agents-used"), (50,)),
    RESTART: (20,),
}
_ONCE_SECONDS = 10.0
"""A lap that takes longer, by the processor or by the clock, is taken once, not in each round."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.more and (given.quick or given.only or given.workloads):
        parser.error("--more adds whole rounds to the last whole race: leave --quick, --only and --workloads out.")
    name = _name_of(given)
    if given.again:
        _report(json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")), name)
        return 0
    try:
        kept = _raced(given, RESULTS / f"{name}.json")
    except OtherRaceError as error:
        parser.error(str(error))
    _report(kept, name)
    return 0


def _name_of(given: argparse.Namespace) -> str:
    """Only a whole race is called `race`."""
    if given.only or given.workloads:
        return "race-part"
    return "race-quick" if given.quick else "race"


def _raced(given: argparse.Namespace, file: Path) -> Mapping[str, Any]:
    """Take the rounds."""
    begin = time.monotonic()
    environments.compile_own()
    entrants = [each for each in ENTRANTS if not given.only or each.name in ("floor", *given.only)]
    all_sizes = QUICK_SIZES if given.quick else SIZES
    sizes = {workload: numbers for workload, numbers in all_sizes.items() if workload in (given.workloads or all_sizes)}
    kept = Kept(file, entrants, sizes, given.folder)
    cells, pythons = _cells(entrants, sizes)
    if given.more:
        kept.go_on(cells)
    repeats = given.repeats or (1 if given.quick else 3)
    for number in range(1, repeats + 1):
        for (workload, size), row in cells.items():
            print(f"{time.monotonic() - begin:5.0f} s, round {number} of {repeats}: {workload} {size}", file=sys.stderr)
            for entrant in entrants:
                if entrant.name in pythons:
                    _take(row[entrant.name], entrant, pythons[entrant.name], given.folder)
                    kept.note_load()
                    kept.write(cells)
        kept.values["rounds"] += 1
    if not (given.only or given.workloads):
        kept.values["budgets"] = [each.as_json() for each in budgets.taken(given.folder, quick=given.quick)]
    kept.values["minutes"] = round((time.monotonic() - begin) / 60 + kept.values.get("minutes", 0.0), 1)
    kept.write(cells)
    return kept.values


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.race", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in ENTRANTS], help="these beside the floor")
    parser.add_argument("--workloads", nargs="+", choices=list(SIZES), help="these alone")
    parser.add_argument("--repeats", type=int, help="rounds (default 3)")
    parser.add_argument("--quick", action="store_true", help="smaller and one round: shows that it runs, not how well")
    parser.add_argument("--more", action="store_true", help="add rounds to the last whole race, under its conditions")
    parser.add_argument("--again", action="store_true", help="write the table and the plot again, of the last race")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where databases are made")
    return parser


def _cells(entrants: Sequence[Entrant], sizes: Sizes) -> tuple[dict[tuple[str, int], dict[str, Cell]], dict[str, str]]:
    """An empty cell for each lap to come, with a note where there is none; and the interpreters."""
    pythons, missing = {}, {}
    for entrant in entrants:
        try:
            pythons[entrant.name] = environments.python_of(entrant)
        except environments.NotInstalledError as error:
            missing[entrant.name] = f"could not be installed here: {table.without_places(str(error))}"
    cells = {}
    for workload, numbers in sizes.items():
        for size in numbers:
            row = cells[workload, size] = {each.name: Cell(workload, size) for each in entrants}
            for entrant in entrants:
                cell = row[entrant.name]
                cell.note = missing.get(entrant.name, entrant.cannot.get(workload.replace("bare", "messages"), ""))
                if workload.startswith("bare") and entrant.name not in HAVE_HANDLERS:
                    cell.note = "a message is always handled by an agent and its model"
    return cells, pythons


def _take(cell: Cell, entrant: Entrant, python: str, folder: Path) -> None:
    """One more lap, unless it takes no part, failed before, or takes too long to be taken again."""
    if cell.note or any(
        max(each.get("cpu_seconds", 0), each.get("wall_seconds", 0)) > _ONCE_SECONDS for each in cell.laps
    ):
        return
    with tempfile.TemporaryDirectory(prefix="race-", dir=folder) as place:
        try:
            cell.laps.append(lap(entrant, python, cell.workload, cell.size, Path(place)))
        except TooLongError as error:
            cell.note = str(error)
        except ProbeError as error:
            cell.note = f"failed: {table.without_places(str(error))}"
            print(f"{entrant.name}, {cell.workload} {cell.size}: {cell.note}", file=sys.stderr)


def _report(kept: Mapping[str, Any], name: str) -> None:
    """Write the table and the plot of what was kept as JSON, and show a whole race in the README."""
    text = page.text(kept, name=name)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    cells = table.from_json(kept["cells"])
    told = plot.draw(
        page.entrants_of(kept),
        table.summary(cells),
        cells,
        versions=kept["versions"],
        facts=page.conditions(kept),
        file=RESULTS / f"{name}.png",
    )
    print(told)
    if name == "race":
        page.show_in_readme(kept)


if __name__ == "__main__":
    sys.exit(main())
