"""`python -m bench.race`: every entrant over every workload, in turn, and one table and one plot of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import report
from bench.probe import REPOSITORY, ProbeError
from bench.race import budgets, environments, plot, table
from bench.race.course import PAIRS
from bench.race.laps import TooLongError, lap
from bench.race.peers import ENTRANTS, HAVE_HANDLERS, OURS, RESTART, Entrant
from bench.race.table import Cell

RESULTS = REPOSITORY / "bench" / "results"
SIZES: dict[str, tuple[int, ...]] = {
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
QUICK_SIZES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("messages-memory", "messages-durable", "bare-memory", "bare-durable"), (4 * PAIRS,)),
    **dict.fromkeys(("tasks-memory", "tasks-durable"), (10,)),
    **dict.fromkeys(("agents-made", "agents-used"), (50,)),
    RESTART: (20,),
}
_ONCE_SECONDS = 10.0
"""A lap that takes more processor time is taken once, not in each round."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.again:
        _report(json.loads((RESULTS / "race.json").read_text(encoding="utf-8")), "race")
        return 0
    name = "race" if given.more or not (given.quick or given.only) else "race-quick"
    kept = _raced(given, RESULTS / f"{name}.json")
    if not given.only:
        kept["budgets"] = [each.as_json() for each in budgets.taken(given.folder, quick=given.quick)]
        _write(kept, RESULTS / f"{name}.json")
    _report(kept, name)
    return 0


def _raced(given: argparse.Namespace, file: Path) -> dict[str, Any]:
    """Take the rounds; what was taken is written after each lap, so that a race may be broken off."""
    entrants = [each for each in ENTRANTS if not given.only or each.name in ("floor", *given.only)]
    repeats = given.repeats or (1 if given.quick else 3)
    sizes = QUICK_SIZES if given.quick else SIZES
    cells, pythons = _cells(entrants, sizes)
    kept: dict[str, Any] = {
        "machine": report.machine_facts(given.folder) | {"nice": os.nice(0), "load_average": [], "rounds": 0},
        "versions": {},
        "cells": [],
        "budgets": [],
    }
    if given.more:
        kept = json.loads(file.read_text(encoding="utf-8"))
        for key, row in table.from_json(kept["cells"]).items():
            cells.setdefault(key, {}).update(row)
    facts = kept["machine"]
    kept["versions"] |= {each.name: environments.version_of(each) for each in entrants}
    for number in range(1, repeats + 1):
        for (workload, size), row in cells.items():
            if workload not in (given.workloads or sizes):
                continue
            print(f"round {number} of {repeats}: {workload} {size}", file=sys.stderr)
            for entrant in entrants:
                if entrant.name in pythons:
                    _take(row[entrant.name], entrant, pythons[entrant.name], given.folder)
                    loads = [*facts["load_average"], round(os.getloadavg()[0], 1)]
                    facts["load_average"] = [min(loads), max(loads)]
                    kept |= {"taken_at": datetime.now(UTC).isoformat(timespec="seconds"), "cells": table.as_json(cells)}
                    _write(kept, file)
        facts["rounds"] += 1
    return kept


def _write(kept: Mapping[str, Any], file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.race", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in ENTRANTS], help="these beside the floor")
    parser.add_argument("--workloads", nargs="+", choices=list(SIZES), help="these alone")
    parser.add_argument("--repeats", type=int, help="rounds (default 3)")
    parser.add_argument("--quick", action="store_true", help="smaller and one round: shows that it runs, not how well")
    parser.add_argument("--more", action="store_true", help="add rounds to the last race")
    parser.add_argument("--again", action="store_true", help="write the table and the plot again, of the last race")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where databases are made")
    return parser


def _cells(
    entrants: Sequence[Entrant], sizes: dict[str, tuple[int, ...]]
) -> tuple[dict[tuple[str, int], dict[str, Cell]], dict[str, str]]:
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
    if cell.note or any(taken.get("cpu_seconds", 0.0) > _ONCE_SECONDS for taken in cell.laps):
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
    """Write the table and the plot of what was kept as JSON."""
    entrants = [each for each in ENTRANTS if each.name in kept["versions"]]
    text = report_text(kept, entrants, name=name)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    cells, facts = table.from_json(kept["cells"]), kept["machine"]
    told = plot.draw(
        entrants,
        table.summary(cells),
        cells,
        versions=kept["versions"],
        facts=f"{_machine(facts)}; {_load(facts)}",
        file=RESULTS / f"{name}.png",
    )
    print(told)


def report_text(kept: Mapping[str, Any], entrants: Sequence[Entrant], *, name: str = "race") -> str:
    """The file for readers."""
    cells, facts, versions = table.from_json(kept["cells"]), kept["machine"], kept["versions"]
    stress = [budgets.Budget(each["name"], each["unit"], each["limit"], each["measured"]) for each in kept["budgets"]]
    parts = [
        "# The race",
        f"Made by `make race`; how to read it is in `bench/README.md`. {_machine(facts)}; {_load(facts)}.",
        *([kept["remark"]] if kept.get("remark") else []),
        f"![The race]({name}.png)",
        table.markdown(entrants, table.summary(cells), cells, versions),
    ]
    if ahead := table.ahead_of(OURS.name, table.summary(cells), cells):
        parts += ["Where others are ahead of us:", "\n".join(ahead)]
    for title, shown in table.columns(cells).items():
        parts += [f"## {title.capitalize()}", table.markdown(entrants, shown, cells, versions)]
        kind = title.split(",")[0]
        if title != "tasks, durable":
            parts.append("\n".join(f"- {each.name}: {each.how[kind]}" for each in entrants if kind in each.how))
    if noted := table.notes(entrants, cells):
        parts += ["## What is missing", "\n".join(noted)]
    if stress:
        parts += ["## Budgets of a server, ours alone", budgets.markdown(stress)]
    return "\n\n".join(parts) + "\n"


def _machine(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {facts[key]}" for key in ("cores", "processor", "python", "sqlite", "file_system"))


def _load(facts: Mapping[str, Any]) -> str:
    low, high = facts["load_average"]
    busy = f"the load of the machine was {low} to {high}, {facts['rounds']} round(s), nice {facts['nice']}"
    if high > facts["cores"] / 2:
        return f"{busy}: others used it meanwhile, so compare processor time, not wall time"
    return busy


if __name__ == "__main__":
    sys.exit(main())
