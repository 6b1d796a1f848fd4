"""The race: the protocol of its scripts, and the tables that are made of what they print."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.probe import REPOSITORY, ProbeError, Sample
from bench.race import __main__ as race
from bench.race import course, environments, kept, laps, page, table
from bench.race.course import PAIRS, WORKLOADS, Course, Doing, Script
from bench.race.peers import ENTRANTS, FLOOR, OURS, PEERS, Entrant
from bench.race.reasons import REASONS
from bench.race.table import Cell

FACTS = {
    "cores": 2,
    "processor": "any",
    "system": "Linux",
    "python": "3",
    "sqlite": "3",
    "file_system": "ext4",
    "load_average": [0.1, 0.2],
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


def values(**other: Any) -> dict[str, Any]:
    """What is kept of that race."""
    made = {
        "machine": FACTS,
        "rounds": 1,
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


@pytest.mark.parametrize("entrant", [FLOOR, OURS], ids=lambda entrant: entrant.name)
@pytest.mark.parametrize("workload", race.QUICK_SIZES)
def test_we_and_the_floor_run_the_whole_course(entrant: Entrant, workload: str, tmp_path: Path) -> None:
    size = {"restart": 4, "tasks": 3, "agents": 3}.get(workload.partition("-")[0], 2 * PAIRS)
    sample = laps.lap(entrant, sys.executable, workload, size, tmp_path)
    if workload == "restart":
        assert (sample["tasks_lost"], sample["steps_lost"]) == (0, 0)
    else:
        assert sample["done"] == size
        assert sample["cpu_seconds"] > 0


class Counting(Script):
    """Asks its model while it is made, and once for each task; the tasks of some numbers fail."""

    fails: tuple[str, ...] = ()

    async def make_worker(self, task: str) -> Doing:
        self.course.asked()

        async def run() -> int:
            self.course.asked()
            if task in self.fails:
                raise OSError("the database is locked")
            return 1

        return run


def test_what_is_made_before_and_what_warms_up_is_not_measured(tmp_path: Path) -> None:
    measured = Course("tasks-memory", 5, tmp_path)
    done = asyncio.run(course.run(measured, Counting(measured)))
    assert measured.result(done)["model_calls"] == 5
    assert done == 5


def test_a_task_that_fails_is_one_that_is_not_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = Course("tasks-memory", 5, tmp_path)
    script = type("Failing", (Counting,), {"fails": ("task-3",)})
    assert asyncio.run(course.run(measured, script(measured))) == 4
    assert "1 failed, one of them with OSError('the database is locked')" in capsys.readouterr().err


def test_a_lap_of_which_all_tasks_fail_fails(tmp_path: Path) -> None:
    measured = Course("tasks-memory", 2, tmp_path)
    script = type("Failing", (Counting,), {"fails": ("task-0", "task-1", "warm-0", "warm-1")})
    with pytest.raises(OSError, match="the database is locked"):
        asyncio.run(course.run(measured, script(measured)))


def test_a_table_has_a_row_for_each_entrant_and_says_how_far_it_is_from_the_floor() -> None:
    text = page.text(values())
    rows = [line for line in text.splitlines() if line.startswith("| AI Whisperer 1.0 |")]
    assert len(rows) == len(table.columns(cells()))
    assert "2 (2x)" in text
    assert "| autogen 2.0 | - |" in text
    assert "failed: there is no such table" in text
    assert "| descriptors left | 16 files | 17 files | NO |" in text


def test_the_table_of_what_matters_most_has_a_row_for_each_measure() -> None:
    shown = table.summary(cells())
    lines = page.readme_part(values()).splitlines()
    assert "|  | floor | AI Whisperer 1.0 | autogen 2.0 |" in lines
    assert "| W2 CPU ms a task @1,000, durable | 1 | 2 | - |" in lines
    assert sum(line.startswith("| W") for line in lines) == len(shown) == len(table._SUMMARY)


def test_a_part_of_a_race_has_the_tables_of_that_part() -> None:
    part = {key: row for key, row in cells().items() if key[0] == "agents-made"}
    assert list(table.columns(part)) == ["agents"]
    assert [column.heading for column in table.summary(part)] == [
        "W3 KB an agent, created",
        "W3 CPU ms an agent, created",
    ]


def test_the_readme_shows_the_race_that_is_kept(tmp_path: Path) -> None:
    kept_file, copy = race.RESULTS / "race.json", tmp_path / "README.md"
    if kept_file.exists():
        copy.write_text(page.README.read_text(encoding="utf-8"), encoding="utf-8")
        page.show_in_readme(json.loads(kept_file.read_text(encoding="utf-8")), file=copy)
        assert copy.read_text(encoding="utf-8") == page.README.read_text(encoding="utf-8")
    else:
        assert "No figures are kept yet." in page.README.read_text(encoding="utf-8")


def test_a_race_fills_its_place_in_the_readme_again_and_again(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(page.README.read_text(encoding="utf-8"), encoding="utf-8")
    for load in (0.5, 0.7):
        page.show_in_readme(values(machine={**FACTS, "load_average": [0.1, load]}), file=readme)
        text = readme.read_text(encoding="utf-8")
        assert text.count("bench/results/race.png") == 1
        assert f"load average 0.1 to {load}" in text
        assert "No figures" not in text


def test_a_readme_without_a_place_for_the_race_is_told(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# Nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="no place for the race"):
        page.show_in_readme(values(), file=readme)


@pytest.mark.parametrize("also", ["--quick", "--only=agno", "--workloads=restart"])
def test_rounds_are_added_to_a_whole_race_only(also: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        race.main(["--more", also])
    assert "leave --quick, --only and --workloads out" in capsys.readouterr().err


def test_rounds_under_other_conditions_are_not_mixed(tmp_path: Path) -> None:
    file, sizes = tmp_path / "race.json", {"tasks-memory": (10,)}
    found = {("tasks-memory", 10): {FLOOR.name: Cell("tasks-memory", 10, [lap_of(1.0)])}}
    before = kept.Kept(file, [FLOOR], sizes, tmp_path)
    before.write(found)
    empty = {("tasks-memory", 10): {FLOOR.name: Cell("tasks-memory", 10)}}
    kept.Kept(file, [FLOOR], sizes, tmp_path).go_on(empty)
    assert empty == found
    with pytest.raises(kept.OtherRaceError, match=r"had other sizes, so its rounds and these do not compare"):
        kept.Kept(file, [FLOOR], {"tasks-memory": (100,)}, tmp_path).go_on(empty)
    with pytest.raises(kept.OtherRaceError, match="other versions"):
        kept.Kept(file, [FLOOR, OURS], sizes, tmp_path).go_on(empty)
    with pytest.raises(kept.OtherRaceError, match=r"There is no none\.json"):
        kept.Kept(tmp_path / "none.json", [FLOOR], sizes, tmp_path).go_on(empty)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ([], "race"),
        (["--quick"], "race-quick"),
        (["--only", "agno"], "race-part"),
        (["--workloads", "restart"], "race-part"),
    ],
)
def test_only_a_whole_race_is_kept_as_one(arguments: list[str], name: str) -> None:
    assert race._name_of(race._parser().parse_args(arguments)) == name


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
    assert "compare processor time, not wall time" in page.text(values(machine={**FACTS, "load_average": [1.0, 7.5]}))
    assert "compare processor time" not in page.text(values())


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
    assert told.startswith("- W2 CPU ms a task @1,000, memory: autogen 0.5 (AI Whisperer 2). ")


def test_each_reason_is_of_a_measure_of_the_race() -> None:
    measures = {(column.workload, column.value.__name__) for column in table.all_columns(cells())}
    assert REASONS.keys() <= measures
    assert all(reason.endswith(".") for reason in REASONS.values())


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
