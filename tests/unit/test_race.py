"""The race: the protocol of its scripts, and the tables that are made of what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.probe import REPOSITORY, ProbeError, Sample
from bench.race import __main__ as race
from bench.race import environments, laps, table
from bench.race.course import PAIRS, WORKLOADS, Course
from bench.race.peers import ENTRANTS, FLOOR, OURS, PEERS
from bench.race.table import Cell

FACTS = {
    "cores": 2,
    "processor": "any",
    "python": "3",
    "sqlite": "3",
    "file_system": "ext4",
    "load_average": [0.1, 0.2],
    "rounds": 1,
    "nice": 0,
}


def lap_of(cpu_seconds: float, *, done: int = 1000, model_calls: int = 3000) -> Sample:
    return {
        "wall_seconds": 0.3,
        "cpu_seconds": cpu_seconds,
        "grown_kb": 1000.0,
        "peak_kb": 2048.0,
        "done": done,
        "model_calls": model_calls,
        "tool_calls": 2000,
    }


RESTARTED: Sample = {
    "tasks_lost": 0,
    "steps_before": 250,
    "steps_repeated": 2,
    "steps_open_repeated": 1,
    "steps_lost": 0,
    "first_step_seconds": 0.5,
    "first_step_cpu": 0.3,
    "opening_seconds": 0.1,
}


def cells() -> dict[tuple[str, int], dict[str, Cell]]:
    """A race of the floor and us, in which we take twice as long, and one that fails."""
    found = {}
    for workload, sizes in race.SIZES.items():
        for size in sizes:
            samples = [RESTARTED] if workload == "restart" else [lap_of(1.0, done=size, model_calls=3 * size)]
            twice = [RESTARTED] if workload == "restart" else [lap_of(2.0, done=size, model_calls=3 * size)]
            found[workload, size] = {
                FLOOR.name: Cell(workload, size, samples),
                OURS.name: Cell(workload, size, twice),
                PEERS[0].name: Cell(workload, size, note="failed: there is no such table"),
            }
    return found


def kept(**other: Any) -> dict[str, Any]:
    made = {
        "machine": FACTS,
        "versions": {FLOOR.name: "", OURS.name: "1.0", PEERS[0].name: "2.0"},
        "cells": json.loads(json.dumps(table.as_json(cells()))),
        "budgets": [{"name": "descriptors left", "unit": "files", "limit": 16.0, "measured": 17.0, "met": False}],
    }
    return {**made, **other}


def test_a_script_prints_one_line_that_tells_what_was_done(tmp_path: Path) -> None:
    sample = laps.lap(FLOOR, sys.executable, "tasks-durable", 3, tmp_path)
    assert (sample["done"], sample["model_calls"], sample["tool_calls"]) == (3, 9, 6)
    assert sample["cpu_seconds"] > 0
    assert sample["wall_seconds"] >= 0.15


def test_a_script_refuses_a_workload_that_there_is_not(tmp_path: Path) -> None:
    command = laps.command(FLOOR, sys.executable, "tasks-nowhere", 3, tmp_path)
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "There is no workload 'tasks-nowhere'" in done.stderr


def test_a_script_that_fails_is_told_with_its_last_line(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match=r"unable to open database file"):
        laps.lap(FLOOR, sys.executable, "tasks-durable", 3, tmp_path / "missing")


def test_a_killed_entrant_is_started_again_and_its_repeated_steps_are_counted(tmp_path: Path) -> None:
    sample = laps.lap(FLOOR, sys.executable, "restart", 4, tmp_path)
    assert (sample["tasks_lost"], sample["steps_lost"]) == (0, 0)
    assert sample["steps_before"] >= 10
    assert 0 < sample["first_step_cpu"] < 5
    assert sample["steps_repeated"] <= 4


def test_a_table_has_a_row_for_each_entrant_and_says_how_far_it_is_from_the_floor() -> None:
    entrants = (FLOOR, OURS, PEERS[0])
    text = race.report_text(kept(), entrants)
    rows = [line for line in text.splitlines() if line.startswith("| AI Whisperer 1.0 |")]
    assert len(rows) == 1 + len(table.columns(cells()))
    assert "2 (2x)" in text
    assert "| autogen 2.0 | - |" in text
    assert "failed: there is no such table" in text
    assert "| descriptors left | 16 files | 17 files | NO |" in text


def test_a_cell_that_took_too_long_shows_so() -> None:
    found = cells()
    found["tasks-durable", 1000][OURS.name] = Cell("tasks-durable", 1000, note="> 60 s of CPU")
    column = next(each for each in table.columns(found)["tasks, durable"] if each.heading == "CPU ms a task @1000")
    assert column.shown(found, OURS.name) == "> 60 s of CPU"


def test_lost_and_repeated_work_is_the_worst_of_all_rounds() -> None:
    cell = Cell("tasks-memory", 1000, [lap_of(1.0), lap_of(1.0, done=990, model_calls=3007)])
    assert cell.worst(table.undone) == 10
    assert cell.worst(table.repeated) == 7


def test_a_busy_machine_is_told() -> None:
    busy = race.report_text(kept(machine={**FACTS, "load_average": [1.0, 7.5]}), (FLOOR, OURS, PEERS[0]))
    assert "compare processor time, not wall time" in busy
    assert "compare processor time" not in race.report_text(kept(), (FLOOR, OURS, PEERS[0]))


def test_every_entrant_has_a_script_and_a_pinned_version_and_says_how_it_does_what_it_does() -> None:
    for entrant in ENTRANTS:
        assert Path(race.__file__).with_name(f"peer_{entrant.script}.py").is_file()
        assert {"messages", "tasks", "agents"} <= entrant.how.keys()
        assert ("restart" in entrant.how) != ("restart" in entrant.cannot)
        assert bool(environments.version_of(entrant)) == (entrant is not FLOOR)


def test_every_workload_of_the_race_is_one_of_the_course() -> None:
    for sizes in (race.SIZES, race.QUICK_SIZES):
        assert {each for each in sizes if each != "restart"} <= set(WORKLOADS)
        assert all(size % PAIRS == 0 for each in sizes if "messages" in each or "bare" in each for size in sizes[each])


def test_a_course_says_what_is_durable_and_what_is_begun_anew(tmp_path: Path) -> None:
    durable = {name for name in WORKLOADS if Course(name, 1, tmp_path).durable}
    assert durable == {"messages-durable", "bare-durable", "tasks-durable", "restart-begin", "restart-again"}
    assert {name for name in WORKLOADS if not Course(name, 1, tmp_path).fresh} == {"restart-again"}


def test_who_is_ahead_of_us_is_told() -> None:
    found = cells()
    found["tasks-memory", 1000][PEERS[0].name] = Cell("tasks-memory", 1000, [lap_of(0.5)])
    found["messages-memory", 20 * PAIRS][PEERS[0].name] = Cell("messages-memory", 20 * PAIRS, [lap_of(0.5, done=100)])
    (told,) = table.ahead_of(OURS.name, table.summary(found), found)
    assert told == "- W2 CPU ms/task @1000, memory: autogen 0.5 (AI Whisperer 2)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot open /home/me/.race/a.db: locked", "cannot open …: locked"),
        ("no match at https://index.example/simple/agno/", "no match at …"),
        ("3 of 4 and/or 5 s", "3 of 4 and/or 5 s"),
    ],
)
def test_a_note_names_no_place_on_this_machine(text: str, shown: str) -> None:
    assert table.without_places(text) == shown
