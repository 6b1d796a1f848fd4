"""Storms: the race of the example is found and shrunk, its lock mends it, and bugs of the runtime are caught."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState
from ai_whisperer.errors import StormError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore
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
from ai_whisperer.storm.injecting import FaultyTool
from ai_whisperer.storm.sources import team_in
from ai_whisperer.storm.storming import Storm, Terms, run_storm
from ai_whisperer.storm.universe import EXPECTED, RESTLESS, run_universe
from tests.planted import Caught, SignedSearch, search
from tests.simulation.plants import acknowledge_before_the_commit
from tests.simulation.storm_stage import INVOICE, LOCKED, REPORT, TEAM, universe, written

TWICE = "no_invoice_is_paid_twice"


def test_two_clerks_pay_one_invoice_and_the_schedule_is_one_fault() -> None:
    storm = Storm(team_in(INVOICE))
    report = run_storm(storm, range(60))
    print(f"storm: {report.universes} universes, {report.failed} failed, {report.cpu_seconds:.1f} s of CPU")
    (finding,) = report.findings
    assert finding.violation.invariant == TWICE
    assert report.failed == len(finding.seeds) > 1
    assert finding.exact
    assert len(finding.schedule.faults) == 1
    assert finding.schedule.interleaving.is_plain
    again = storm.outcome(finding.schedule)
    assert again.digest == finding.digest
    assert finding.violation in again.violations


def test_a_lock_with_its_token_mends_it() -> None:
    storm = Storm(team_in(LOCKED))
    report = run_storm(storm, range(80))
    print(f"storm: {report.universes} universes, {report.faults} faults, {report.cpu_seconds:.1f} s of CPU")
    assert report.findings == ()
    assert report.faults > 50
    slow = Schedule(faults=(SlowModel(agent="ann", request=3, seconds=600.0),))  # her lease runs out meanwhile
    assert storm.outcome(slow).violations == ()


def test_the_workflow_of_the_guide_holds_in_any_universe() -> None:
    report = run_storm(Storm(team_in(REPORT)), range(30))
    rate = report.universes / report.cpu_seconds
    print(f"storm: {rate:.0f} universes a second of CPU")
    assert report.findings == ()


def test_processes_share_the_seeds_and_find_the_same() -> None:
    storm = Storm(team_in(INVOICE))
    alone, shared = (run_storm(storm, range(40), jobs=jobs) for jobs in (1, 2))
    assert shared.findings == alone.findings
    assert (shared.universes, shared.failed, shared.faults) == (alone.universes, alone.failed, alone.faults)


def test_a_universe_runs_the_same_each_time_and_each_seed_is_another(tmp_path: Path) -> None:
    storm = Storm(written(tmp_path))
    digests = [storm.outcome(storm.schedule(seed)).digest for seed in range(12)]
    assert digests == [storm.outcome(storm.schedule(seed)).digest for seed in range(12)]
    assert len(set(digests)) > 6


FAULTS: list[tuple[AnyFault, float]] = [
    (SlowModel(agent="ann", request=2, seconds=30.0), 30.0),
    (SlowTool(tool="work", call=1, before_seconds=20.0), 20.0),
    (SlowTool(tool="work", call=2, after_seconds=20.0), 20.0),
    (SlowCommit(commit=4, seconds=7.0), 7.0),
    (LatePerson(act=3, seconds=50.0), 50.0),
    (FailedModel(agent="ann", request=1, failure=ModelFailure.RATE_LIMIT), 0.0),
    (FailedModel(agent="ann", request=2, failure=ModelFailure.UNAVAILABLE), 0.0),
    (FailedModel(agent="ann", request=3, failure=ModelFailure.SERVER_ERROR), 0.0),
    (FailedModel(agent="ann", request=4, failure=ModelFailure.CUT_OFF), 0.0),
    (Kill(moment=KillMoment.MODEL_ASKED, of="ann", number=1, down_seconds=9.0), 9.0),
    (Kill(moment=KillMoment.MODEL_ANSWERED, of="ann", number=2), 0.0),
    (Kill(moment=KillMoment.TOOL_BEGAN, of="work", number=1), 0.0),
    (Kill(moment=KillMoment.TOOL_ENDED, of="work", number=2), 0.0),
    (Kill(moment=KillMoment.BEFORE_COMMIT, number=2), 0.0),
    (Kill(moment=KillMoment.AFTER_COMMIT, number=5, down_seconds=60.0), 60.0),
]


@pytest.mark.parametrize(("fault", "seconds"), FAULTS, ids=lambda each: each.told() if hasattr(each, "told") else "")
def test_each_fault_happens_once_at_its_moment_and_the_team_ends_its_work(
    tmp_path: Path, fault: AnyFault, seconds: float
) -> None:
    source = written(tmp_path)
    plain, _, done = universe(source)
    assert (plain.happened, done) == ((), ["first", "second"])
    outcome, log, done = universe(source, fault)
    assert outcome.happened == (fault,)
    assert outcome.violations == ()
    assert [task.state for task in log.tasks()] == ["completed", "completed"]
    assert outcome.seconds >= plain.seconds + seconds
    assert len(log.named("session.opened")) == isinstance(fault, Kill)
    began = isinstance(fault, Kill) and fault.moment is KillMoment.TOOL_BEGAN
    assert done == (["second"] if began else ["first", "second"])
    if isinstance(fault, Kill) and fault.of == "work":  # nobody knows what came of it, and nobody does it again
        assert [call.state for call in log.calls("work")].count(StepState.UNKNOWN) == 1


def test_a_process_that_dies_again_while_it_starts_is_started_again(tmp_path: Path) -> None:
    kills = [Kill(moment=KillMoment.AFTER_COMMIT, number=number) for number in range(1, 9)]
    outcome, log, _ = universe(written(tmp_path), *kills, seed=5)
    assert outcome.happened == tuple(kills)
    assert outcome.violations == ()
    assert all(task.state.ended for task in log.tasks())


def test_a_person_who_approves_late_is_waited_for_and_one_who_never_does_is_named(tmp_path: Path) -> None:
    asks = TEAM.replace("@tool\n", "@tool(needs_approval=True)\n")
    talk = asks.replace("wait for all\n", "approve ann\nwait for all\n").replace(
        "expect ann", "approve ann\nexpect ann"
    )
    source = written(tmp_path, talk)
    plain, log, done = universe(source)
    assert (plain.violations, plain.unmet, done) == ((), (), ["first", "second"])
    late, _, done = universe(source, LatePerson(act=3, seconds=7200.0))
    assert (late.violations, done) == ((), ["first", "second"])
    assert late.seconds >= 7200
    for moment in (KillMoment.BEFORE_COMMIT, KillMoment.AFTER_COMMIT):
        for number in range(1, plain.shape.commits):  # also while the decision is on its way
            cut, _, done = universe(source, Kill(moment=moment, number=number))
            assert (cut.violations, len(done)) == ((), len(set(done))), (moment, number)
            assert not [each for each in cut.unmet if "approve" in each], (moment, number)
    never, log, done = universe(written(tmp_path, talk.replace("second\napprove ann\n", "second\n", 1)))
    assert (never.violations, done) == ((), ["first"])
    assert [each.partition(":")[0] for each in log.waiting["ann"]] == ["approval"]


def test_what_the_script_expects_has_to_come_in_every_universe_if_that_is_wanted(tmp_path: Path) -> None:
    source = written(tmp_path, TEAM.replace("expect ann contains second", "expect ann contains did second"))
    kill = Schedule(faults=(Kill(moment=KillMoment.TOOL_BEGAN, of="work", number=2),))
    assert Storm(source).outcome(kill).violations == ()
    (violation,) = Storm(source, Terms(expects=True)).outcome(kill).violations
    assert violation.invariant == EXPECTED
    assert violation.message.startswith("line 6, expect ann contains did second: ")
    wrong = written(tmp_path, TEAM.replace("expect ann contains second", "expect ann contains third"))
    with pytest.raises(StormError, match=r"line 6, expect ann contains third.* so without any fault"):
        Storm(wrong)


def test_a_team_that_never_rests_is_a_finding(tmp_path: Path) -> None:
    rings = """
from ai_whisperer.domain.conversation import Answer, ToolCall

talk = "agent ann\\nagent ben\\nann: begin\\nwait 1s"

def answer(request):
    if request.turns[-1].__class__.__name__ == "ToolTurn":
        return "sent"
    other = '{"to_agent": "%s", "subject": "s", "body": "b"}' % ("ben" if request.agent_id == "ann" else "ann")
    return Answer(tool_calls=(ToolCall(call_id="1", name="send_mail", arguments=other),), finish="tool_call")
"""
    outcome = run_universe(written(tmp_path, rings).team(), Schedule(), most_rounds=1_000)
    assert [each.invariant for each in outcome.violations] == [RESTLESS]


def test_the_log_tells_of_calls_mails_tasks_and_states() -> None:
    found: list[Any] = []
    source = team_in(REPORT)
    team = source.team()
    team.invariants.append(_invariant(found.append))  # type: ignore[attr-defined]
    assert run_universe(team, Schedule()).violations == ()
    (log,) = found
    assert [call.agent for call in log.calls("send_mail")] == ["analyzer", "writer", "reviewer"]
    assert [call.arguments["subject"] for call in log.calls(agent="writer", to_agent="reviewer")] == [
        "Report on customer sentiment"
    ]
    assert log.calls("send_mail", to_agent="nobody") == []
    assert {run.step_id for run in log.runs("read_feedback")} == {call.step_id for call in log.calls("read_feedback")}
    assert [mail.sender for mail in log.mails(recipient="user")] == ["reviewer"]
    assert log.mails(sender="writer", subject="Report")
    assert {task.agent_id for task in log.tasks(state="completed")} == {"analyzer", "writer", "reviewer"}
    assert log.answers("analyzer") == ["I have analysed the feedback and mailed the result to the writer."]
    assert log.states("reviewer")[0] == "idle"
    assert "active" in log.states("reviewer")
    assert log.time_of(log.named("async.task.completed")[0]) > 0


def _invariant(function: Callable[[Any], object]) -> Any:
    from ai_whisperer.storm.invariants import Invariant

    return Invariant(name="seen", function=function)


def repeat_every_tool_call_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FaultyTool, "may_repeat", lambda *_: True)


def forget_at_a_start_what_was_done(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> dict[str, list[StepRecord]]:
        return {}

    patch.setattr(SqliteStore, "open_steps", nothing)


def leave_calls_open(patch: pytest.MonkeyPatch) -> None:
    """The result of a call is told, and not kept."""
    put = Unit.put_step

    def without_results(self: Unit, step: StepRecord) -> None:
        if step.kind is StepKind.TOOL and step.state is StepState.DONE:
            step = replace(step, state=StepState.STARTED, result=None, finished_at=None)
        put(self, step)

    patch.setattr(Unit, "put_step", without_results)


PLANTED = {
    plant.__name__: (plant, sign)
    for plant, sign in (
        (acknowledge_before_the_commit, "what_was_accepted_is_not_lost"),
        (repeat_every_tool_call_after_a_crash, "no_effect_happens_twice"),
        (forget_at_a_start_what_was_done, "no_finished_step_is_repeated"),
        (leave_calls_open, "what_has_ended_has_no_open_step"),
    )
}


@pytest.mark.planted("storms", unit="seed")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught_by_its_sign(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caught: Caught
) -> None:
    plant, sign = PLANTED[name]
    storm = Storm(written(tmp_path), Terms(kinds=(FaultKind.KILLS,)))
    plant(monkeypatch)

    def failure_of(seed: int) -> str | None:
        found = storm.outcome(storm.schedule(seed)).violations
        return "; ".join(sorted(f"{each.invariant}: {each.message}" for each in found)) or None

    signed = SignedSearch(sign, failure_of)
    assert search(range(200), signed.failure_of, caught), f"{name} was not caught in 200 universes {signed.told}"


def test_an_interleaving_that_matters_is_found_and_kept(tmp_path: Path) -> None:
    """Two agents hear the same event: who is first is decided by nothing but the order."""
    race = TEAM.replace("what = without_marks(last.text)", "what = request.agent_id")
    race = re.sub(
        'talk = """.*?"""',
        'talk = """agent ann subscribes=["go"]\nagent ben subscribes=["go"]\nbroadcast go"""',
        race,
        flags=re.DOTALL,
    )
    race = race.replace("    LOGS.append(log)", "    LOGS.append(log)\n    assert DONE == ['ann', 'ben']")
    storm = Storm(written(tmp_path, race), Terms(kinds=()))
    report = run_storm(storm, range(20))
    (finding,) = report.findings
    assert 0 < report.failed < 20
    assert finding.schedule.faults == ()
    assert finding.schedule.interleaving.choices is not None
    assert storm.outcome(Schedule(interleaving=Interleaving(seed=finding.seeds[0]))).violations


def test_a_finding_that_no_schedule_decides_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something outside of the file remembers what other universes did."""
    monkeypatch.setattr("sys.universes", [], raising=False)
    memory = "    import sys\n    sys.universes.append(1)\n    assert len(sys.universes) != 4"
    report = run_storm(Storm(written(tmp_path, TEAM.replace("    LOGS.append(log)", memory))), range(6))
    (finding,) = report.findings
    assert (finding.exact, finding.digest, report.failed) == (False, "", 1)
