"""What readers see of a race: the file beside its figures, and its part of the README."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.probe import REPOSITORY
from bench.race import budgets, table
from bench.race.course import STEPS
from bench.race.peers import ENTRANTS, OURS, RESTART, TASKS, Entrant

README = REPOSITORY / "README.md"
_PART = re.compile(r"(<!-- race: written by `make race` -->\n).*?(\n<!-- end of the race -->)", re.DOTALL)


def entrants_of(kept: Mapping[str, Any]) -> Sequence[Entrant]:
    return [each for each in ENTRANTS if each.name in kept["versions"]]


def conditions(kept: Mapping[str, Any]) -> str:
    """Machine, load, rounds."""
    facts = kept["machine"]
    machine = ", ".join(f"{facts[key]}" for key in ("processor", "system", "file_system"))
    low, high = facts["load_average"]
    told = (
        f"{facts['cores']} cores {machine}, Python {facts['python']}, SQLite {facts['sqlite']}; "
        f"load average {low} to {high}, nice {facts['nice']}, {kept['rounds']} round(s)"
    )
    if high > facts["cores"]:
        return f"{told}. Others used the machine meanwhile, so compare processor time, not wall time"
    return told


def text(kept: Mapping[str, Any], *, name: str = "race") -> str:
    """The file for readers."""
    cells, versions, entrants = table.from_json(kept["cells"]), kept["versions"], entrants_of(kept)
    stress = [budgets.Budget(each["name"], each["unit"], each["limit"], each["measured"]) for each in kept["budgets"]]
    parts = [
        "# The race",
        f"Made by `make race`; how to read it is in `bench/README.md`. {conditions(kept)}.",
        f"![The race]({name}.png)",
        table.by_measure(entrants, table.summary(cells), cells, versions),
    ]
    if behind := table.ahead_of(OURS.name, table.all_columns(cells), cells):
        parts += ["Where others are ahead of us, and why:", "\n".join(behind)]
    for title, shown in table.columns(cells).items():
        parts += [f"## {title.capitalize()}", table.markdown(entrants, shown, cells, versions)]
        kind = title.split(",")[0]
        if title != f"{TASKS}, durable":
            parts.append("\n".join(f"- {each.name}: {each.how[kind]}" for each in entrants if kind in each.how))
        if title == RESTART:
            parts.append(f"A task has {STEPS} steps. {table.RESTART_NOTE}")
    if noted := table.notes(entrants, cells):
        parts += ["## What is missing", "\n".join(noted)]
    if stress:
        parts += ["## Budgets of a server, ours alone", budgets.markdown(stress)]
    return "\n\n".join(parts) + "\n"


def readme_part(kept: Mapping[str, Any]) -> str:
    """The plot, the table of what matters most, and where others are ahead."""
    cells = table.from_json(kept["cells"])
    parts = [
        "![The race: messages, tasks, agents and restarts of each framework](bench/results/race.png)",
        table.by_measure(entrants_of(kept), table.summary(cells), cells, kept["versions"]),
        f"{conditions(kept)}. All tables: [bench/results/race.md](bench/results/race.md).",
    ]
    if behind := table.ahead_of(OURS.name, table.summary(cells), cells):
        parts += ["Where others are ahead:", "\n".join(behind)]
    return "\n\n".join(parts)


def show_in_readme(kept: Mapping[str, Any], *, file: Path = README) -> None:
    """Put the race into its part of the README."""
    before = file.read_text(encoding="utf-8")
    after, times = _PART.subn(lambda found: f"{found[1]}{readme_part(kept)}{found[2]}", before)
    if times != 1:
        raise ValueError(f"{file.name} has no place for the race: it needs the two comments around it once.")
    file.write_text(after, encoding="utf-8")
