"""Providers that are down for a while: agents wait, say so, and go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState
from ai_whisperer.errors import (
    ModelError,
    ModelNameError,
    ModelRefusedError,
    ModelServerError,
    ModelUnavailableError,
    UnknownAgentError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.records import USER, StepState, TaskRecord
from tests.simulation.stage import play, play_over_crash, prompt_of, until

DOWN = "The provider failed (status 503)."


def now() -> float:
    return asyncio.get_running_loop().time()


class Provider:
    """Answers but in the time between `down_from` and `up_at`; keeps the times at which it was asked."""

    def __init__(
        self, *, down_from: float = 0.0, up_at: float, error: type[ModelError] = ModelUnavailableError
    ) -> None:
        self._down_from, self._up_at, self._error = down_from, up_at, error
        self.asked_at: list[float] = []

    def __call__(self, request: ModelRequest) -> str:
        self.asked_at.append(now())
        if self._down_from <= now() < self._up_at:
            raise self._error(DOWN)
        return f"done: {prompt_of(request)}"


async def ended(manager: AsyncAgentSessionManager, *tasks: TaskRecord) -> list[TaskRecord]:
    return [await manager.wait_task(task) for task in tasks]


async def waits_for_provider(manager: AsyncAgentSessionManager, agent_id: str = "a") -> None:
    await until(lambda: manager.get_agent_status(agent_id).retry_at is not None)


@pytest.mark.parametrize("minutes", [2, 29])
def test_an_outage_is_waited_out(minutes: int) -> None:
    provider = Provider(up_at=minutes * 60.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        assert await manager.run_task("a", "go") == "done: go"
        assert now() < minutes * 60 + 95, "it is asked again soon after it is back"
        assert len(provider.asked_at) < 20 + minutes * 2, "it is not asked all the time"
        assert manager.dead_letters().tasks == []

    play(scenario, provider)


def test_an_agent_with_a_schedule_goes_on_after_an_outage() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"schedule": [{"interval_seconds": 10, "prompt": "look"}]})
        await asyncio.sleep(600)
        assert manager.get_agent_status("a").started
        assert manager.dead_letters().tasks == []
        done = [task for task in manager.list_tasks("a", limit=1000) if task.state is TaskState.COMPLETED]
        assert len(done) > 40, "those that came due meanwhile are one"

    play(scenario, Provider(down_from=60, up_at=180))


def test_a_wait_for_the_provider_shows_in_the_step_the_status_and_the_snapshot() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.send_task("a", "go")
        assert manager.get_agent_status("a").retry_at is None
        await waits_for_provider(manager)
        status = manager.get_agent_status("a")
        assert (status.state, status.retry_reason) == (AgentState.ACTIVE, DOWN)
        await manager.flushed()
        (step,) = manager.list_steps(task.id)
        assert (step.error and step.error.message, step.retry_at) == (DOWN, status.retry_at)
        assert step.outage_seconds > 0
        ((shown,),) = [each.steps for each in (await manager.snapshot()).tasks]
        assert (shown.retry_at, shown.retry_reason) == (status.retry_at, DOWN)
        (told,) = [note for note in manager.notifications() if note.name == "step.retried"]
        assert told.params["retryAt"] == status.retry_at
        await manager.wait_task(task)
        assert manager.get_agent_status("a").retry_at is None

    play(scenario, Provider(up_at=30))


@pytest.mark.parametrize("scope", ["agent", "session"])
def test_an_outage_is_waited_out_no_longer_than_the_limit_that_was_set(scope: str) -> None:
    provider = Provider(up_at=1e9)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.set_limits({"max_outage_seconds": 100}, agent_id="a" if scope == "agent" else None)
        (failed,) = await ended(manager, await manager.send_task("a", "go"))
        assert (failed.state, failed.error and failed.error.code) == (TaskState.FAILED, "model_unavailable")
        assert failed.error is not None
        assert "waited for, for 101 seconds (max_outage_seconds)" in failed.error.message
        assert 100 <= now() < 120

    play(scenario, provider)


def test_a_host_name_that_does_not_exist_is_waited_for_a_short_time_and_the_status_says_so() -> None:
    said = "The provider could not be reached: its host name cannot be resolved."

    def say(_: ModelRequest) -> str:
        raise ModelUnavailableError(said, longest_outage_seconds=120.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.send_task("a", "go")
        await waits_for_provider(manager)
        assert manager.get_agent_status("a").retry_reason == said
        (failed,) = await ended(manager, task)
        assert 120 <= now() < 125
        assert failed.error is not None
        assert "max_outage_seconds" not in failed.error.message, "that limit would not help"

    play(scenario, say)


def test_without_a_limit_of_its_own_an_agent_waits_for_half_an_hour() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        (failed,) = await ended(manager, await manager.send_task("a", "go"))
        assert failed.state is TaskState.FAILED
        assert 1_800 <= now() < 1_900

    play(scenario, Provider(up_at=1e9))


@pytest.mark.parametrize("error", [ModelRefusedError, ModelNameError])
def test_what_the_provider_refuses_fails_at_once(error: type[ModelError]) -> None:
    provider = Provider(up_at=60, error=error)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        (failed,) = await ended(manager, await manager.send_task("a", "go"))
        assert failed.state is TaskState.FAILED
        assert len(provider.asked_at) == 1

    play(scenario, provider)


def test_an_outage_uses_up_none_of_the_attempts_for_other_faults() -> None:
    errors: list[ModelError] = [
        *(ModelUnavailableError(DOWN) for _ in range(10)),
        ModelServerError(),
        ModelServerError(),
    ]

    def say(_: ModelRequest) -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"retry": {"max_attempts": 3}})
        task = await manager.send_task("a", "go")
        await manager.wait_task(task)
        (step,) = manager.list_steps(task.id)
        assert (step.state, step.attempt, step.failures) == (StepState.DONE, 13, 2)

    play(scenario, say)


async def _stopped(manager: AsyncAgentSessionManager, _: TaskRecord) -> None:
    await manager.stop_agent("a")
    assert manager.get_agent_status("a").state is AgentState.STOPPED


async def _cancelled(manager: AsyncAgentSessionManager, task: TaskRecord) -> None:
    assert (await manager.cancel_task(task)).state is TaskState.CANCELLED


async def _paused(manager: AsyncAgentSessionManager, task: TaskRecord) -> None:
    await manager.pause_agent("a")
    await asyncio.sleep(300)
    assert manager.get_task(task.id).state is TaskState.RUNNING
    await manager.resume_agent("a")
    assert (await manager.wait_task(task)).state is TaskState.COMPLETED


@pytest.mark.parametrize("act", [_stopped, _cancelled, _paused])
def test_a_stop_a_cancel_and_a_pause_cut_the_wait_short(act: Callable[..., Any]) -> None:
    provider = Provider(up_at=200)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.send_task("a", "go")
        await asyncio.sleep(100)
        asked, begun = len(provider.asked_at), now()
        await act(manager, task)
        if act is not _paused:
            assert now() == begun, "it did not take until the next try"
            await asyncio.sleep(300)
            assert len(provider.asked_at) == asked
        else:
            assert not [at for at in provider.asked_at if begun < at < begun + 300]

    play(scenario, provider)


def test_a_crash_of_the_process_does_not_begin_the_wait_anew() -> None:
    def say(_: ModelRequest) -> str:
        raise ModelUnavailableError(DOWN)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_outage_seconds": 200}})
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("a").retry_at is not None
        assert (await manager.wait_task("t")).state is TaskState.FAILED
        assert now() < 120, "what was waited before the crash counts"

    play_over_crash(before, after, say, crash_after_seconds=150, down_for_seconds=36_000)


def test_after_a_crash_the_task_goes_on_when_the_provider_is_back() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED

    play_over_crash(before, after, Provider(up_at=60.0), crash_after_seconds=50)


def test_many_agents_do_not_all_come_at_once_when_the_provider_is_back() -> None:
    provider = Provider(up_at=120)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = []
        for number in range(300):
            await manager.create_agent(f"a{number}")
            tasks.append(await manager.send_task(f"a{number}", "go"))
        for task in await ended(manager, *tasks):
            assert task.state is TaskState.COMPLETED
        seconds = Counter(int(at) for at in provider.asked_at if at >= 60)
        assert max(seconds.values()) <= 30, "no more than a tenth of them in any one second"

    play(scenario, provider)


# Stops for failures


def bad_until(up_at: float, error: type[ModelError] = ModelServerError) -> Provider:
    return Provider(up_at=up_at, error=error)


IMPATIENT = {"retry": {"max_attempts": 1}, "supervision": {"max_failures": 3}}


async def fail_thrice(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("a", IMPATIENT)
    for number in range(3):
        await manager.send_task("a", "go", task_id=f"t{number}")
    await until(lambda: manager.get_agent_status("a").state is AgentState.STOPPED)


def test_an_agent_that_is_stopped_for_faults_of_its_provider_starts_again_by_itself() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        reason = manager.get_agent_status("a").reason
        assert "The cause is the provider, so the agent starts again by itself at 2027-01-15" in reason
        (failing,) = [note for note in manager.notifications(limit=1000) if note.name == "agent.failing"]
        later = await manager.send_task("a", "later")
        assert (await manager.wait_task(later)).state is TaskState.COMPLETED
        assert 300 <= now() <= 460
        assert 300 <= failing.params["restartAt"] - failing.at <= 450
        (mail,) = manager.mailbox(USER)
        assert (mail.sender, mail.subject) == ("a", "a was stopped: too many of its tasks failed")
        assert mail.body == reason

    play(scenario, bad_until(100))


def test_an_outage_that_is_not_over_in_time_gives_the_agent_a_rest_and_the_user_one_mail() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        tasks = [await manager.send_task("a", f"{number}") for number in range(8)]
        await manager.wait_task(tasks[0])
        await asyncio.sleep(1)
        assert "starts again by itself at" in manager.get_agent_status("a").reason
        finished = await ended(manager, *tasks)
        failed = [task for task in finished if task.state is TaskState.FAILED]
        assert len(failed) == 3, "two hours, in which it rests longer and longer"
        assert {task.state for task in finished[3:]} == {TaskState.COMPLETED}
        (mail,) = manager.mailbox(USER)
        assert mail.subject == "a was stopped: its provider is down"
        assert DOWN in mail.body

    play(scenario, Provider(up_at=2 * 3600.0))


def test_what_a_person_had_to_change_before_an_outage_does_not_end_the_rest_for_good() -> None:
    errors: list[ModelError] = [ModelRefusedError("No."), ModelUnavailableError(DOWN)]

    def say(_: ModelRequest) -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_outage_seconds": 0.5}})
        tasks = [await manager.send_task("a", f"{number}") for number in range(3)]
        assert [task.state for task in await ended(manager, *tasks)] == [
            TaskState.FAILED,
            TaskState.FAILED,
            TaskState.COMPLETED,
        ]

    play(scenario, say)


def test_a_rest_for_an_outage_that_the_process_did_not_live_to_begin_begins_at_the_start() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.send_task("a", "go", task_id="t")
        await manager.wait_task(task)
        await asyncio.sleep(1e6)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_task("t").state is TaskState.FAILED
        assert not manager.get_agent_status("a").started
        await until(lambda: manager.get_agent_status("a").started)

    play_over_crash(before, after, Provider(up_at=1e9), crash_after_seconds=1_850)


def test_retry_after_does_not_make_an_outage_longer_than_its_limit() -> None:
    def say(_: ModelRequest) -> str:
        raise ModelUnavailableError(DOWN, retry_after_seconds=3_600)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.send_task("a", "go")
        await waits_for_provider(manager)
        assert "asked again after 1,799 (max_outage_seconds)" in manager.get_agent_status("a").retry_reason
        await manager.wait_task(task)
        assert 1_800 <= now() < 1_810

    play(scenario, say)


def test_the_rest_grows_with_each_stop_in_a_row_and_the_user_is_told_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {**IMPATIENT, "schedule": [{"interval_seconds": 10, "prompt": "look"}]})
        await asyncio.sleep(6 * 3600)
        failing = [note for note in manager.notifications(limit=100_000) if note.name == "agent.failing"]
        rests = [note.params["restartAt"] - note.at for note in failing]
        assert len(rests) > 5
        assert 300 <= rests[0] <= 450
        assert 600 <= rests[1] <= 900
        assert all(3_600 <= rest <= 5_400 for rest in rests[4:])
        assert len(manager.mailbox(USER)) == 1

    play(scenario, bad_until(1e9))


def test_a_start_that_is_due_after_a_crash_of_the_process_happens() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("a").state is AgentState.STOPPED
        await until(lambda: manager.get_agent_status("a").started)
        assert 250 <= now() <= 410

    play_over_crash(before, after, bad_until(30), crash_after_seconds=50)


def test_an_agent_that_a_person_starts_or_stops_meanwhile_is_left_alone() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await manager.start_agent("a")
        await manager.stop_agent("a", reason="enough")
        await asyncio.sleep(3600)
        assert not manager.get_agent_status("a").started

    play(scenario, bad_until(30))


def test_an_agent_that_a_person_stops_once_more_stays_stopped() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await manager.stop_agent("a")
        await asyncio.sleep(3600)
        assert not manager.get_agent_status("a").started

    play(scenario, bad_until(30))


def test_an_agent_that_is_stopped_for_what_a_person_has_to_change_tells_the_user_by_mail() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await fail_thrice(manager)
        await asyncio.sleep(7200)
        status = manager.get_agent_status("a")
        assert not status.started
        (mail,) = manager.mailbox(USER)
        assert mail.body == status.reason
        assert "then start the agent" in mail.body

    play(scenario, bad_until(1e9, ModelRefusedError))


def test_an_agent_whose_place_was_taken_meanwhile_starts_when_there_is_one_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_started_agents": 1})
        await fail_thrice(manager)
        await manager.create_agent("b")
        await asyncio.sleep(3600)
        assert not manager.get_agent_status("a").started
        await manager.stop_agent("b")
        await asyncio.sleep(61)
        assert manager.get_agent_status("a").started

    play(scenario, bad_until(30))


# All failed tasks at once


def test_all_failed_tasks_are_retried_with_one_call_in_their_order() -> None:
    order: list[str] = []

    def say(request: ModelRequest) -> str:
        if now() < 60:
            raise ModelRefusedError("No.")
        order.append(prompt_of(request))
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("a", "b"):
            await manager.create_agent(name, {"supervision": {"max_failures": 100}})
        tasks = [await manager.send_task("ab"[number % 2], f"{number}") for number in range(6)]
        late = await manager.send_task("a", "late", timeout_seconds=30)
        dismissed = await manager.send_task("a", "dismissed")
        await ended(manager, *tasks, late, dismissed)
        await manager.dismiss_task(dismissed)
        await asyncio.sleep(100)
        one = await manager.retry_failed_tasks("b")
        assert (one.retried, one.not_retried) == (3, 0)
        assert one.task_ids == tuple(task.id for task in tasks[1::2])
        others = await manager.retry_failed_tasks()
        assert (others.retried, others.not_retried, list(others.reasons)) == (3, 1, [late.id])
        assert "The time for task" in others.reasons[late.id]
        assert {task.state for task in await ended(manager, *tasks)} == {TaskState.COMPLETED}
        assert [each for each in order if each in "024"] == ["0", "2", "4"]
        assert manager.get_task(dismissed.id).state is TaskState.FAILED
        again = await manager.retry_failed_tasks("b")
        assert (again.retried, again.not_retried) == (0, 0)
        with pytest.raises(UnknownAgentError):
            await manager.retry_failed_tasks("nobody")

    play(scenario, say)


def test_failed_tasks_that_find_no_room_are_told_and_can_be_retried_later() -> None:
    def say(_: ModelRequest) -> str:
        if now() < 60:
            raise ModelRefusedError("No.")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"supervision": {"max_failures": 1000}, "limits": {"max_concurrent_tasks": 50}})
        tasks = [await manager.send_task("a", f"{number}") for number in range(20)]
        await ended(manager, *tasks)
        await asyncio.sleep(60)
        await manager.pause_agent("a")
        await manager.set_limits({"max_queue_length": 5}, agent_id="a")
        first = await manager.retry_failed_tasks()
        assert first.retried + first.not_retried == 20
        assert first.not_retried
        assert all("queue" in reason for reason in first.reasons.values())
        await manager.resume_agent("a")
        await manager.set_limits({"max_queue_length": 100}, agent_id="a")
        second = await manager.retry_failed_tasks()
        assert second.retried == first.not_retried
        assert {task.state for task in await ended(manager, *tasks)} == {TaskState.COMPLETED}

    play(scenario, say)
