"""What the race brought, as one table for readers, one for each workload, and as JSON."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.probe import Sample
from bench.race.course import IDEAL_SECONDS, STEPS
from bench.race.peers import AGENTS, MESSAGES, RESTART, TASKS, Entrant

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
    return lambda lap, _: lap[name]


@dataclass(frozen=True)
class Column:
    """A column of a table: which cell of a row is shown, and which value of it."""

    heading: str
    workload: str
    size: int
    value: Value
    worst: bool = False
    over_floor: bool = False

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
    found: dict[str, list[Column]] = {MESSAGES: _message_columns(sizes)}
    for place in ("memory", "durable"):
        workload = f"tasks-{place}"
        taken = sizes[workload]
        found[f"{TASKS}, {place}"] = [
            *(Column(f"wall ÷ ideal @{size}", workload, size, wall) for size in taken),
            *(Column(f"CPU ms a task @{size}", workload, size, cpu_ms, over_floor=True) for size in taken),
            Column(f"peak MB @{taken[-1]}", workload, taken[-1], peak_mb),
            *(Column(f"tasks not done @{size}", workload, size, undone, worst=True) for size in taken),
            *(Column(f"calls repeated @{size}", workload, size, repeated, worst=True) for size in taken),
        ]
    for what, title in (("made", "created"), ("used", "created, first task done")):
        for size in sizes.get(f"agents-{what}", []):
            made = found.setdefault(AGENTS, [])
            made.append(Column(f"{title}: KB an agent @{size}", f"agents-{what}", size, kb, over_floor=True))
            made.append(Column(f"{title}: CPU ms an agent @{size}", f"agents-{what}", size, cpu_ms, over_floor=True))
    for size in sizes.get(RESTART, []):
        found[RESTART] = [
            Column(f"tasks lost of {size}", RESTART, size, of("tasks_lost"), worst=True),
            Column("steps never done", RESTART, size, of("steps_lost"), worst=True),
            Column(f"of {STEPS * size} steps: finished, done again", RESTART, size, of("steps_repeated"), worst=True),
            Column("under way, done again", RESTART, size, of("steps_open_repeated"), worst=True),
            Column("CPU s to the first step", RESTART, size, of("first_step_cpu")),
            Column("wall s to the first step", RESTART, size, of("first_step_seconds")),
            Column("wall s after the imports", RESTART, size, of("opening_seconds")),
        ]
    return found


def _message_columns(sizes: Mapping[str, Sequence[int]]) -> list[Column]:
    found = []
    for place in ("memory", "durable"):
        for size in sizes[f"messages-{place}"]:
            title = f"{place}: messages a CPU s"
            found.append(Column(title, f"messages-{place}", size, per_cpu_second, over_floor=True))
            found.append(Column("not done", f"messages-{place}", size, undone, worst=True))
        bare = f"bare-{place}"
        found += [Column(f"{place}, no model", bare, size, per_cpu_second) for size in sizes[bare]]
    return found


def summary(cells: Cells) -> list[Column]:
    """One table of what matters most; sizes as in the race."""
    tables = columns(cells)

    def pick(table: str, heading: str, named: str) -> Column:
        made = [column for column in tables[table] if column.heading.startswith(heading)][-1]
        return Column(named, made.workload, made.size, made.value, worst=made.worst)

    most = max(size for workload, size in cells if workload == "tasks-durable")
    return [
        pick(MESSAGES, "memory: messages", "W1 messages/CPU s, memory"),
        pick(MESSAGES, "durable: messages", "W1 messages/CPU s, durable"),
        pick(f"{TASKS}, memory", "CPU ms", f"W2 CPU ms/task @{most}, memory"),
        pick(f"{TASKS}, durable", "CPU ms", f"W2 CPU ms/task @{most}, durable"),
        pick(f"{TASKS}, durable", "wall", f"W2 wall ÷ ideal @{most}, durable"),
        pick(f"{TASKS}, durable", "peak", f"W2 peak MB @{most}, durable"),
        pick(f"{TASKS}, durable", "tasks not done", "W2 tasks not done, durable"),
        pick(AGENTS, "created: KB", "W3 KB/agent, created"),
        pick(AGENTS, "created, first task done: KB", "W3 KB/agent, used"),
        pick(AGENTS, "created, first task done: CPU", "W3 CPU ms/agent, used"),
        pick(RESTART, "tasks lost", "W4 tasks lost"),
        pick(RESTART, "of", "W4 finished steps done again"),
        pick(RESTART, "CPU s to", "W4 CPU s to the first step"),
    ]


def ahead_of(name: str, shown: Sequence[Column], cells: Cells) -> list[str]:
    """For each column in which others do better than this entrant, who they are."""
    found = []
    for column in shown:
        own = column.found(cells, name)
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
            found.append(f"- {column.heading}: {listed} ({name} {short(own)})")
    return found


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
