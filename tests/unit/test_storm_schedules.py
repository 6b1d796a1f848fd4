"""Schedules of storms: how they are chosen, shrunk, written and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ai_whisperer.errors import StormError
from ai_whisperer.storm.choosing import MOST_FAULTS, Shape, schedule_for
from ai_whisperer.storm.faults import (
    AnyFault,
    FailedModel,
    FaultKind,
    Interleaving,
    Kill,
    KillMoment,
    LatePerson,
    ModelFailure,
    Schedule,
    SlowCommit,
    SlowModel,
    SlowTool,
)
from ai_whisperer.storm.found_file import Found, read_found, write_found
from ai_whisperer.storm.invariants import Violation
from ai_whisperer.storm.shrinking import shrunk

SHAPE = Shape(requests={"ann": 3, "ben": 2}, calls={"pay": 1}, commits=12, acts=4)
SLOW_ANN = SlowModel(agent="ann", request=2, seconds=600.0)
KILL = Kill(moment=KillMoment.TOOL_BEGAN, of="pay", number=1, down_seconds=3600.0)
EVERY_FAULT: Sequence[AnyFault] = (
    SLOW_ANN,
    FailedModel(agent="ben", request=1, failure=ModelFailure.CUT_OFF),
    SlowTool(tool="pay", call=1, before_seconds=5.0, after_seconds=60.0),
    SlowCommit(commit=7, seconds=2.0),
    LatePerson(act=2, seconds=60.0),
    *(Kill(moment=moment, of="x", number=2, down_seconds=1.0) for moment in KillMoment),
)


def test_a_seed_chooses_the_same_schedule_each_time_and_another_seed_another() -> None:
    schedules = [schedule_for(seed, SHAPE) for seed in range(200)]
    assert schedules == [schedule_for(seed, SHAPE) for seed in range(200)]
    assert len(set(schedules)) == 200
    assert all(len(each.faults) <= MOST_FAULTS for each in schedules)
    assert Schedule() not in schedules  # the plain universe is run anyway
    assert {type(fault) for each in schedules for fault in each.faults} == {type(fault) for fault in EVERY_FAULT}
    kills = {fault.moment for each in schedules for fault in each.faults if isinstance(fault, Kill)}
    assert kills == set(KillMoment)


@pytest.mark.parametrize("kind", FaultKind)
def test_only_faults_of_the_kinds_that_are_wanted_are_chosen(kind: FaultKind) -> None:
    faults = [fault for seed in range(50) for fault in schedule_for(seed, SHAPE, [kind]).faults]
    assert {fault.kind for fault in faults} == {kind}
    assert all(schedule_for(seed, SHAPE, []).interleaving.seed == seed for seed in range(20))


def test_a_team_without_tools_has_no_faults_of_tools() -> None:
    faults = [fault for seed in range(200) for fault in schedule_for(seed, Shape(commits=3, acts=1)).faults]
    assert {type(fault) for fault in faults} == {SlowCommit, LatePerson, Kill}


def test_a_schedule_is_shrunk_to_the_faults_that_matter() -> None:
    schedule = Schedule(interleaving=Interleaving(seed=7), faults=(*EVERY_FAULT, KILL))
    tried: list[Schedule] = []

    def fails(candidate: Schedule) -> bool:
        tried.append(candidate)
        slow = any(isinstance(each, SlowModel) and each.seconds > 1 for each in candidate.faults)
        killed = any(isinstance(each, Kill) and each.of == "pay" for each in candidate.faults)
        return slow and killed

    smallest = shrunk(schedule, fails)
    assert smallest == Schedule(
        faults=(SlowModel(agent="ann", request=2, seconds=5.0), Kill(moment=KillMoment.TOOL_BEGAN, of="pay", number=1))
    )
    assert len(tried) == len(set(tried)) < 60


def test_an_interleaving_that_matters_is_kept_for_as_few_choices_as_it_takes() -> None:
    def fails(candidate: Schedule) -> bool:
        order = candidate.interleaving
        return order.seed == 7 and (order.choices is None or order.choices >= 13)

    assert shrunk(Schedule(interleaving=Interleaving(seed=7), faults=(KILL,)), fails) == Schedule(
        interleaving=Interleaving(seed=7, choices=13)
    )


def test_shrinking_ends_with_its_tries_and_keeps_what_fails() -> None:
    schedule = Schedule(interleaving=Interleaving(seed=7), faults=tuple(EVERY_FAULT))
    tried: list[Schedule] = []

    def holds(candidate: Schedule) -> bool:
        tried.append(candidate)
        return False

    assert shrunk(schedule, holds, most_tries=9) == schedule
    assert len(tried) == 9


@pytest.mark.parametrize("fault", EVERY_FAULT, ids=lambda fault: type(fault).__name__)
def test_each_fault_is_told_in_words_of_its_own(fault: AnyFault) -> None:
    others = [each.told() for each in EVERY_FAULT if each != fault]
    assert fault.told() not in others
    assert not fault.told().endswith(".")


def found(**more: object) -> Found:
    return Found(
        team=str(more.pop("team", "team.txt")),
        violation=Violation(invariant="never_twice", message="it was twice"),
        schedule=Schedule(interleaving=Interleaving(seed=3, choices=9), faults=tuple(EVERY_FAULT)),
        seed=17,
        digest="abc",
    )


def test_a_schedule_is_read_as_it_was_written_from_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "storm.json"
    write_found(found(team=str(tmp_path / "team.txt")), file)
    assert json.loads(file.read_text())["team"] == "../team.txt"
    monkeypatch.chdir("/")
    read = read_found(file)
    assert Path(read.team).resolve() == tmp_path / "team.txt"
    assert read.schedule == found().schedule


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"storm": 2}, "was written by a newer release: it has version 2, and this one reads 1"),
        ({"storm": "one"}, "\"storm\" has to be the version of the file, 1, and is 'one'"),
        ({"schedul": {}}, "there is no field 'schedul'. Did you mean 'schedule'?"),
        ({"schedule": {"faults": [{"fault": "slow_modell"}]}}, "cannot be replayed: Invalid value 'slow_modell'"),
        (
            {"schedule": {"faults": [{"fault": "slow_model", "agent": "a", "request": 0, "seconds": 1}]}},
            "Expected `int` >= 1 - at `$.schedule.faults[0].request`",
        ),
        ({"schedule": {"faults": [{"fault": "kill", "moment": "later", "number": 1}]}}, "Invalid enum value 'later'"),
        ({"violation": None}, "Expected `object`, got `null` - at `$.violation`"),
    ],
)
def test_a_schedule_that_cannot_be_replayed_says_why(tmp_path: Path, change: dict[str, object], told: str) -> None:
    file = tmp_path / "storm.json"
    write_found(found(), file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change), encoding="utf-8")
    with pytest.raises(StormError) as error:
        read_found(file)
    assert str(file) in error.value.message
    assert told in error.value.message


@pytest.mark.parametrize(("text", "told"), [("not json", "it is not JSON"), ("{}", "does not begin with its version")])
def test_a_file_that_is_no_schedule_is_told(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "storm.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StormError, match=told):
        read_found(file)
    with pytest.raises(StormError, match="cannot be read"):
        read_found(tmp_path / "none.json")
