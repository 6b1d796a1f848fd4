"""A recording in a storm: models and tools answer by the cause of the step, in whatever order things come."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ai_whisperer.replay.recording import record, session_store, write_recording
from ai_whisperer.storm.faults import FaultKind, Interleaving, Kill, KillMoment, Schedule, SlowModel
from ai_whisperer.storm.sources import team_in
from ai_whisperer.storm.storming import Storm, Terms, run_storm
from ai_whisperer.storm.team import TeamSource
from tests.simulation.storm_stage import INVOICE, REPORT

CHECKS = """
from ai_whisperer.storm import invariant


@invariant
def nothing_is_paid_twice(log):
    assert len(log.runs("pay", invoice="A-17")) <= 1


@invariant
def what_was_recorded_is_said(log):
    assert log.answers("ann") == ["Invoice A-17 is paid."], log.answers("ann")
"""


def recorded(folder: Path, script: Path, *, checks: str = "") -> TeamSource:
    """What a script does in a universe without faults, as a recording."""
    kept, file, more = folder / "kept", folder / "team.wrec", folder / "checks.py"
    Storm(team_in(script)).outcome(Schedule(interleaving=Interleaving(seed=1)), keep=kept)

    async def take() -> None:
        async with session_store(kept, "storm") as store:
            write_recording(await record(store, "storm"), file)

    asyncio.run(take())
    more.write_text(checks, encoding="utf-8")
    return team_in(file, invariants=[more] if checks else [])


def test_a_recorded_team_does_in_the_plain_universe_what_it_did(tmp_path: Path) -> None:
    storm = Storm(recorded(tmp_path, INVOICE, checks=CHECKS))
    assert (storm.plain.violations, storm.plain.unmet) == ((), ())
    assert storm.plain.shape.requests == {"ann": 3, "ben": 2}
    assert storm.plain.shape.calls == {"look_up": 2, "pay": 1}
    assert storm.plain.seconds == pytest.approx(11, abs=0.5)


def test_a_recorded_team_keeps_its_answers_when_everything_comes_late_or_dies(tmp_path: Path) -> None:
    storm = Storm(recorded(tmp_path, INVOICE, checks=CHECKS))
    late = Schedule(faults=(SlowModel(agent="ann", request=1, seconds=600.0),))
    assert storm.outcome(late).violations == ()
    killed = Schedule(faults=(Kill(moment=KillMoment.MODEL_ANSWERED, of="ann", number=2, down_seconds=30.0),))
    assert storm.outcome(killed).violations == ()
    report = run_storm(storm, range(12))
    assert report.findings == ()
    assert report.faults > 5


def test_mail_of_a_recorded_team_is_answered_in_any_order(tmp_path: Path) -> None:
    storm = Storm(recorded(tmp_path, REPORT), Terms(kinds=(FaultKind.MODELS, FaultKind.DISK)))
    assert (storm.plain.violations, storm.plain.unmet) == ((), ())
    assert storm.plain.shape.requests["reviewer"] == 2
    assert run_storm(storm, range(6)).findings == ()


def test_a_broken_promise_shows_in_a_recorded_team_too(tmp_path: Path) -> None:
    checks = CHECKS.replace("<= 1", "== 1 and not log.named('session.opened')")
    report = run_storm(Storm(recorded(tmp_path, INVOICE, checks=checks), Terms(kinds=(FaultKind.KILLS,))), range(12))
    (finding,) = [each for each in report.findings if each.violation.invariant == "nothing_is_paid_twice"]
    (kill,) = finding.schedule.faults
    assert isinstance(kill, Kill)
