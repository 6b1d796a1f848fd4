"""What a race has brought so far: a file that is written after each lap, so that a race may be broken off."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import report
from bench.race import environments, table
from bench.race.peers import Entrant
from bench.race.table import Cell, Cells

Sizes = Mapping[str, Sequence[int]]
"""The sizes of each workload."""

_SAME = ("sizes", "versions")
_SAME_OF_MACHINE = ("cores", "processor", "system", "python", "sqlite", "file_system", "nice")


class OtherRaceError(Exception):
    """Rounds cannot be added to the race that is kept."""


class Kept:
    """A race: its conditions, its cells, and the file that it is kept in."""

    def __init__(self, file: Path, entrants: Sequence[Entrant], sizes: Sizes, folder: Path) -> None:
        self._file = file
        self.values: dict[str, Any] = {
            "machine": {**report.machine_facts(folder), "load_average": [], "nice": os.nice(0)},
            "sizes": {workload: list(numbers) for workload, numbers in sizes.items()},
            "versions": {each.name: environments.version_of(each) for each in entrants},
            "rounds": 0,
            "cells": [],
            "budgets": [],
        }

    def go_on(self, cells: dict[tuple[str, int], dict[str, Cell]]) -> None:
        """Take the rounds of the file as the first ones. Raises `OtherRaceError` if they do not compare with these."""
        try:
            before = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise OtherRaceError(f"There is no {self._file.name} to add rounds to. Leave --more out.") from None
        differ = [key for key in _SAME if before.get(key) != self.values[key]]
        machines = before["machine"], self.values["machine"]
        differ += [key for key in _SAME_OF_MACHINE if machines[0].get(key) != machines[1][key]]
        if differ:
            raise OtherRaceError(
                f"The race in {self._file.name} had other {', '.join(differ)}, so its rounds and these do not compare. "
                "Leave --more out to begin a new one."
            )
        self.values |= before
        for key, row in table.from_json(before["cells"]).items():
            cells[key].update(row)

    def note_load(self) -> None:
        loads = [*self.values["machine"]["load_average"], round(os.getloadavg()[0], 1)]
        self.values["machine"]["load_average"] = [min(loads), max(loads)]

    def write(self, cells: Cells) -> None:
        self.values |= {"taken_at": datetime.now(UTC).isoformat(timespec="seconds"), "cells": table.as_json(cells)}
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self.values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
