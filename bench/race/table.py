"""What the race brought, as one table for readers, one for each workload, and as JSON."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.probe import Sample
from bench.race.course import IDEAL_SECONDS, STEPS
from bench.race.peers import AGENTS, MESSAGES, RESTART, TASKS, Entrant
from bench.race.reasons import NOT_KNOWN, REASONS

Value = Callable[[Sample, int], float]
"""One value of a lap, of the sample and of the size."""


@dataclass
class Cell:
    """The laps of one entrant at one workload and size; the note says why there are none, or what went wrong."""

    workload: str
    size: int
    laps: list[Sample] = field(default_factory=list)
    note: str = ""

    def typical(self, value: Value) -> float | None:
        return statistics.median(value(lap, self.size) for lap in self.laps) if self.laps else None

    def worst(self, value: Value) -> float | None:
        return max(value(lap, self.size) for lap in self.laps) if self.laps else None


Cells = Mapping[tuple[str, int], Mapping[str, Cell]]
"""By workload and size, then by the name of the entrant."""


def cpu_ms(lap: Sample, size: int) -> float:
    return lap["cpu_seconds"] / size * 1000


def per_cpu_second(lap: Sample, size: int) -> float:
    del size
    return lap["done"] / lap["cpu_seconds"]


def wall(lap: Sample, size: int) -> float:
    del size
    return lap["wall_seconds"] / IDEAL_SECONDS


def kb(lap: Sample, size: int) -> float:
    return lap["grown_kb"] / size


def peak_mb(lap: Sample, size: int) -> float:
    del size
    return lap["peak_kb"] / 1024


def undone(lap: Sample, size: int) -> float:
    """Tasks, messages or agents that were asked for and not done."""
    return size - lap["done"]


def repeated(lap: Sample, size: int) -> float:
    """Model requests and tool calls beyond those that the tasks need."""
    return max(0.0, lap["model_calls"] + lap["tool_calls"] - size * STEPS)


def of(name: str) -> Value:
    """The value of this name as it is."""

    def value(lap: Sample, size: int) -> float:
        del size
        return lap[name]

    value.__name__ = name
    return value


RESTART_NOTE = (
    "Finished steps are done again if their result was not on disk when the process was killed. What was under way "
    "then is begun again by everybody; how much that is says how much was done at the same time, and is no rank."
)


@dataclass(frozen=True)
class Column:
    """A column of a table: which cell of a row is shown, and which value of it."""

    heading: str
    workload: str
    size: int
    value: Value
    worst: bool = False
    over_floor: bool = False
    compared: bool = True
    """Whether more or less of it is better or worse at all."""

    @property
    def more_is_better(self) -> bool:
        return self.value is per_cpu_second

    def found(self, cells: Cells, name: str) -> float | None:
        """The number that is shown, if there is one."""
        cell = cells.get((self.workload, self.size), {}).get(name)
        if cell is None:
            return None
        return cell.worst(self.value) if self.worst else cell.typical(self.value)

    def shown(self, cells: Cells, name: str) -> str:
        cell = cells.get((self.workload, self.size), {}).get(name)
        if cell is None:
            return "-"
        found = self.found(cells, name)
        if found is None:
            return cell.note if cell.note.startswith(">") else "-"
        if not self.over_floor:
            return short(found)
        basis = cells[self.workload, self.size]["floor"].typical(self.value)
        return f"{short(found)} ({short(found / basis)}x)" if basis and name != "floor" else short(found)


def columns(cells: Cells) -> dict[str, list[Column]]:
    """The columns of each table, for the sizes that were run."""
    sizes: dict[str, list[int]] = {}
    for workload, size in sorted(cells, key=lambda key: key[1]):
        sizes.setdefault(workload, []).append(size)
    found = {MESSAGES: _message_columns(sizes)}
    for place in ("memory", "durable"):
        workload = f"tasks-{place}"
        taken = sizes.get(workload, [])
        found[f"{TASKS}, {place}"] = [
            *(Column(f"wall ÷ ideal @{size}", workload, size, wall) for size in taken),
            *(Column(f"CPU ms a task @{size}", workload, size, cpu_ms, over_floor=True) for size in taken),
            *(Column(f"peak MB @{size}", workload, size, peak_mb) for size in taken[-1:]),
            *(Column(f"tasks not done @{size}", workload, size, undone, worst=True) for size in taken),
            *(Column(f"calls repeated @{size}", workload, size, repeated, worst=True) for size in taken),
        ]
    found[AGENTS] = [
        Column(f"{title}: {unit} an agent @{size}", f"agents-{what}", size, value, over_floor=True)
        for what, title in (("made", "created"), ("used", "created, first task done"))
        for size in sizes.get(f"agents-{what}", [])
        for unit, value in (("KB", kb), ("CPU ms", cpu_ms))
    ]
    for size in sizes.get(RESTART, []):
        found[RESTART] = [
            Column(f"tasks lost of {size}", RESTART, size, of("tasks_lost"), worst=True),
            Column("steps never done", RESTART, size, of("steps_lost"), worst=True),
            Column(f"of {STEPS * size} steps: finished, done again", RESTART, size, of("steps_repeated"), worst=True),
            Column("under way, begun again", RESTART, size, of("steps_open_repeated"), worst=True, compared=False),
            Column("CPU s to the first step", RESTART, size, of("first_step_cpu")),
            Column("wall s to the first step", RESTART, size, of("first_step_seconds")),
            Column("wall s after the imports", RESTART, size, of("opening_seconds")),
        ]
    return {title: shown for title, shown in found.items() if shown}


def _message_columns(sizes: Mapping[str, Sequence[int]]) -> list[Column]:
    found = []
    for place in ("memory", "durable"):
        for size in sizes.get(f"messages-{place}", []):
            title = f"{place}: messages a CPU s"
            found.append(Column(title, f"messages-{place}", size, per_cpu_second, over_floor=True))
            found.append(Column(f"{place}: not done", f"messages-{place}", size, undone, worst=True))
        bare = f"bare-{place}"
        found += [
            Column(f"{place}, no model: messages a CPU s", bare, size, per_cpu_second) for size in sizes.get(bare, [])
        ]
    return found


_SUMMARY = (
    (MESSAGES, "memory: messages", "W1 messages a CPU s, memory"),
    (MESSAGES, "durable: messages", "W1 messages a CPU s, durable"),
    (MESSAGES, "memory, no model", "W1 messages a CPU s, no model, memory"),
    (MESSAGES, "durable, no model", "W1 messages a CPU s, no model, durable"),
    (f"{TASKS}, memory", "CPU ms", "W2 CPU ms a task @{}, memory"),
    (f"{TASKS}, durable", "CPU ms", "W2 CPU ms a task @{}, durable"),
    (f"{TASKS}, durable", "wall", "W2 wall ÷ ideal @{}, durable"),
    (f"{TASKS}, durable", "peak", "W2 peak MB @{}, durable"),
    (f"{TASKS}, durable", "tasks not done", "W2 tasks not done of {}, durable"),
    (AGENTS, "created: KB", "W3 KB an agent, created"),
    (AGENTS, "created: CPU", "W3 CPU ms an agent, created"),
    (AGENTS, "created, first task done: KB", "W3 KB an agent, used"),
    (AGENTS, "created, first task done: CPU", "W3 CPU ms an agent, used"),
    (RESTART, "tasks lost", "W4 tasks lost of {}"),
    (RESTART, "of", "W4 finished steps done again"),
    (RESTART, "CPU s to", "W4 CPU s to the first step"),
)
"""What matters most: the table, how the heading begins there (the largest size is taken), and its heading here."""


def summary(cells: Cells) -> list[Column]:
    """One table of what matters most, as far as it was run."""
    tables = columns(cells)
    found = []
    for title, heading, named in _SUMMARY:
        made = [column for column in tables.get(title, []) if column.heading.startswith(heading)]
        found += [replace(column, heading=named.format(f"{column.size:,}"), over_floor=False) for column in made[-1:]]
    return found


def all_columns(cells: Cells) -> list[Column]:
    """Those of all tables."""
    return [column for shown in columns(cells).values() for column in shown]


def ahead_of(name: str, shown: Sequence[Column], cells: Cells) -> list[str]:
    """For each column in which others do better than this entrant, who they are and why that is."""
    found = []
    for column in shown:
        own = column.found(cells, name) if column.compared else None
        others = {other: column.found(cells, other) for other in cells[column.workload, column.size]}
        better = {
            other: value
            for other, value in others.items()
            if other not in (name, "floor")
            and own is not None
            and value is not None
            and (value > own if column.more_is_better else value < own)
        }
        if own is not None and better:
            listed = ", ".join(f"{other} {short(value)}" for other, value in better.items())
            why = REASONS.get((column.workload, column.value.__name__), NOT_KNOWN)
            found.append(f"- {column.heading}: {listed} ({name} {short(own)}). {why}")
    return found


def by_measure(entrants: Sequence[Entrant], shown: Sequence[Column], cells: Cells, versions: Mapping[str, str]) -> str:
    """A row for each column, and a column for each entrant."""
    titles = [f"{each.name} {versions.get(each.name, '')}".strip() for each in entrants]
    lines = [["", *titles], ["---", *("---:" for _ in entrants)]]
    lines += [[column.heading, *(column.shown(cells, each.name) for each in entrants)] for column in shown]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(entrants: Sequence[Entrant], shown: Sequence[Column], cells: Cells, versions: Mapping[str, str]) -> str:
    """A row for each entrant."""
    lines = [["", *(column.heading for column in shown)], ["---", *("---:" for _ in shown)]]
    for entrant in entrants:
        title = f"{entrant.name} {versions.get(entrant.name, '')}".strip()
        lines.append([title, *(column.shown(cells, entrant.name) for column in shown)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def notes(entrants: Sequence[Entrant], cells: Cells) -> list[str]:
    """What is not in the table, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for (workload, size), row in cells.items():
        for entrant in entrants:
            if (cell := row.get(entrant.name)) is not None and cell.note:
                found.setdefault((entrant.name, cell.note), []).append(f"{workload} ({size:,})")
    return [f"- {name}, {', '.join(where)}: {note}" for (name, note), where in found.items()]


def without_places(text: str) -> str:
    """The text without addresses and paths of this machine, which say nothing to others."""
    return re.sub(r"\w+://[^\s,;)]+|(?<!\w)/[\w.~@%+/-]+", "…", text)


def as_json(cells: Cells) -> list[dict[str, Any]]:
    return [
        {"workload": workload, "size": size, "entrant": name, "note": cell.note, "laps": cell.laps}
        for (workload, size), row in cells.items()
        for name, cell in row.items()
    ]


def from_json(kept: Sequence[Mapping[str, Any]]) -> Cells:
    """The cells that `as_json` made."""
    cells: dict[tuple[str, int], dict[str, Cell]] = {}
    for each in kept:
        row = cells.setdefault((each["workload"], each["size"]), {})
        row[each["entrant"]] = Cell(each["workload"], each["size"], list(each["laps"]), each["note"])
    return cells


def short(value: float) -> str:
    """Two or three digits that matter, large numbers whole."""
    if value == int(value) and abs(value) < 1_000:
        return str(int(value))
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1 else f"{value:.2g}"
