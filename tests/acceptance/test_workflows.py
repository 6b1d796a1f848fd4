"""The workflows of the user guide, as the examples run them: on virtual time, without trouble and with a death."""

from __future__ import annotations

import pytest

from ai_whisperer import AgentState, TaskState
from ai_whisperer.domain.conversation import AnswerTurn, UserTurn
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.tasks import TaskKind, TaskRecord
from ai_whisperer.simulation.loop import EPOCH
from tests.acceptance.workflow_stage import WORKFLOWS, Outcome, calm, over_crash
from tests.effort import some

CRASHES = some(9)
LATEST_REPORT = (
    "8 comments, average rating 3.25: 4 good, 1 mixed, 3 bad. They like the search, the support and the shortcuts. "
    "Slowness and lost drafts hurt them."
)


def overlap(*tasks: TaskRecord) -> bool:
    """Whether there was a moment at which all of them ran."""
    return max(task.started_at or 0.0 for task in tasks) < min(task.finished_at or 0.0 for task in tasks)


def test_the_analysis_and_the_template_are_made_at_the_same_time() -> None:
    outcome = calm("parallel_report")
    assert overlap(outcome.task("analysis"), outcome.task("template"))


def test_the_report_goes_from_analyzer_to_writer_to_reviewer_to_user() -> None:
    outcome = calm("parallel_report")
    assert outcome.routes == [
        ("analyzer", "writer"),
        ("writer", "reviewer"),
        ("reviewer", "writer"),
        ("reviewer", "user"),
    ]
    (report,) = outcome.inbox
    assert (report.subject, report.body) == ("Approved: customer sentiment", LATEST_REPORT)
    assert set(outcome.states.values()) == {AgentState.IDLE}


def test_the_writer_still_knows_its_template_when_the_results_come() -> None:
    asked = [
        request
        for request in calm("parallel_report").requests
        if any(isinstance(turn, UserTurn) and "From: analyzer" in turn.text for turn in request.turns)
    ]
    said = [turn.answer.text for turn in asked[0].turns if isinstance(turn, AnswerTurn)]
    assert said == ["The template has three parts - the figures, what customers like, what hurts them."]


def test_the_monitor_is_woken_by_the_alert_by_the_hour_and_by_hand() -> None:
    woken = [
        (note.params["reason"], note.at - EPOCH)
        for note in calm("monitoring").log
        if note.name == "agent.state_changed" and note.params["action"] == "wake"
    ]
    reasons, moments = [reason for reason, _ in woken], [moment for _, moment in woken]
    assert reasons == [
        "event 'alert' from user",
        "event 'hourly_check' from schedule:monitor-1",
        "User requested immediate check",
    ]
    assert moments[0] == pytest.approx(900, abs=1)
    assert moments[1] == pytest.approx(3600, abs=1)


def test_the_monitor_reports_after_each_look_and_goes_back_to_sleep_by_itself() -> None:
    outcome = calm("monitoring")
    assert [mail.subject for mail in outcome.inbox] == [
        "Looked because of alert",
        "Looked because of hourly_check",
        "Looked because I was woken",
    ]
    assert len(outcome.moments("step.finished", tool="sleep")) == 3
    assert len(outcome.moments("agent.state_changed", to=AgentState.SLEEPING)) == 4
    assert outcome.states == {"monitor": AgentState.SLEEPING}


def test_a_sleeping_monitor_asks_nothing() -> None:
    outcome = calm("monitoring")
    assert len(outcome.requests) == 9
    asleep, awake = outcome.moments("agent.state_changed", to=AgentState.SLEEPING)[1:3]
    (hour,) = outcome.moments("schedule.fired")
    assert hour == pytest.approx(3600, abs=1)
    assert not [note for note in outcome.log if asleep < note.at - EPOCH < hour]
    assert asleep < hour < awake


def test_the_planner_delegates_and_the_coders_work_at_the_same_time() -> None:
    outcome = calm("decomposition")
    parts = [outcome.tasks_of(coder)[0] for coder in ("coder1", "coder2", "coder3")]
    assert [(part.kind, part.parent_id) for part in parts] == [(TaskKind.DELEGATED, "plan")] * 3
    assert ["Task A" in parts[0].prompt, "Task B" in parts[1].prompt, "Task C" in parts[2].prompt] == [True] * 3
    assert overlap(*parts)


def test_each_coder_sends_its_part_to_the_integrator_and_its_result_to_the_planner() -> None:
    letters = [(sender, to, subject[:16]) for sender, to, subject, _ in calm("decomposition").letters]
    assert letters == [
        ("coder1", "integrator", "Part A"),
        ("coder1", "planner", "Result of Task A"),
        ("coder2", "integrator", "Part B"),
        ("coder2", "planner", "Result of Task B"),
        ("coder3", "integrator", "Part C"),
        ("coder3", "planner", "Result of Task C"),
        ("integrator", "user", "The feature is r"),
    ]


def test_the_integrator_combines_and_tests_once_when_it_has_all_three_parts() -> None:
    outcome = calm("decomposition")
    (tested,) = outcome.moments("step.finished", tool="combine_and_test")
    assert tested > max(outcome.moments("mail.sent", recipient="integrator"))
    (delivered,) = outcome.inbox
    verdict, _, module = delivered.body.partition("\n\n")
    assert verdict == "Passed: one module with count_words, longest_word, most_common_word."
    assert module.startswith("```python\ndef count_words(text):\n    return len(text.split())\n")
    assert module.endswith("\n```")
    finals = [task.result.final for task in outcome.tasks_of("integrator") if task.result]
    assert finals == ["Not all parts are there yet; I wait for the others."] * 2 + [
        "The parts are together, tested and delivered."
    ]


def test_the_parallel_way_brings_the_same_in_less_time() -> None:
    outcome = calm("migration")
    (published,) = outcome.inbox
    result = outcome.task("task-3").result
    assert result is not None
    assert published.body == result.final
    assert overlap(outcome.task("alice-task"), outcome.task("patricia-prep"))
    assert not overlap(outcome.task("task-1"), outcome.task("task-2"))
    one_after_another = (outcome.task("task-3").finished_at or 0) - outcome.task("task-1").created_at
    in_parallel = (outcome.tasks_of("eamonn")[-1].finished_at or 0) - outcome.task("alice-task").created_at
    assert in_parallel < 0.8 * one_after_another


def test_debbie_makes_a_round_every_thirty_minutes() -> None:
    rounds = calm("debbie").moments("async.task.started", agentId="debbie")
    assert rounds == pytest.approx([1800, 3600], abs=1)


def test_debbie_is_content_while_all_is_well_and_reports_the_one_that_is_stuck() -> None:
    outcome = calm("debbie")
    said = [task.result.final for task in outcome.tasks_of("debbie") if task.result]
    assert said == ["All is well.", "One agent is stuck; the user knows."]
    (mail,) = outcome.inbox
    assert (mail.sender, mail.subject, mail.priority, mail.state) == (
        "debbie",
        "coder is stuck",
        "high",
        MailState.QUEUED,
    )
    assert outcome.states == {"debbie": AgentState.IDLE, "coder": AgentState.STOPPED}


def moment_of(outcome: Outcome, crash: int) -> float:
    """A moment just after something was decided, while it is on its way to the disk or has just arrived there."""
    note = outcome.log[crash * (len(outcome.log) - 1) // (CRASHES - 1)]
    return note.at - EPOCH + 0.001 + 0.003 * (crash % 7)


@pytest.mark.parametrize("crash", range(CRASHES))
@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_that_is_killed_and_run_again_ends_as_if_nothing_had_happened(name: str, crash: int) -> None:
    undisturbed = calm(name)
    outcome = over_crash(
        name,
        crash_after_seconds=moment_of(undisturbed, crash),
        down_for_seconds=(0.0, 60.0, 200.0)[crash % 3],
        seed=crash,
    )
    assert outcome.told == undisturbed.told
    assert outcome.letters == undisturbed.letters
    assert outcome.states == undisturbed.states
    assert outcome.repeated == []
    ended = {task.state for task in outcome.tasks if task.id != "build"}
    assert ended == {TaskState.COMPLETED}


@pytest.mark.parametrize("name", ["monitoring", "debbie"])
@pytest.mark.parametrize("crash", range(0, CRASHES, 3))
def test_what_fell_due_while_nothing_ran_is_made_up_for_once(name: str, crash: int) -> None:
    undisturbed = calm(name)
    death, down_for = moment_of(undisturbed, crash), 3 * 3600.0
    outcome = over_crash(name, crash_after_seconds=death, down_for_seconds=down_for, seed=crash)
    restart = death + down_for
    fired = [note for note in outcome.log if note.name == "schedule.fired" and note.at >= EPOCH + restart]
    assert sum(note.params["dueAt"] < EPOCH + restart - 60 for note in fired) <= 1
    assert set(outcome.letters) == set(undisturbed.letters)
    assert outcome.states == undisturbed.states
    assert outcome.repeated == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_that_is_run_again_after_its_end_does_nothing_more(name: str) -> None:
    undisturbed = calm(name)
    end = undisturbed.log[-1].at - EPOCH
    outcome = over_crash(name, crash_after_seconds=end + 1, down_for_seconds=0.0, seed=1)
    assert outcome.told == undisturbed.told
    (*log, last) = outcome.log
    assert last.name == "session.opened"
    assert len(log) == len(undisturbed.log)
    assert outcome.requests == []
