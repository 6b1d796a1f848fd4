"""Providers that are down for a while: agents wait, say so, and go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.tasks import StepState, TaskRecord
from ai_whisperer.errors import (
    ModelError,
    ModelNameError,
    ModelRefusedError,
    ModelServerError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import ModelRequest
from tests.simulation.provider import DOWN, Provider, ended, now, waits_for_provider
from tests.simulation.stage import play, play_over_crash


@pytest.mark.parametrize("minutes", [2, 29])
def test_an_outage_is_waited_out(minutes: int) -> None:
    provider = Provider(up_at=minutes * 60.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        assert await manager.run_task("a", "go") == "done: go"
        assert now() < minutes * 60 + 95, "it is asked again soon after it is back"
        assert len(provider.asked_at) < 20 + minutes * 2, "it is not asked all the time"
        assert (await manager.dead_letters()).tasks == []

    play(scenario, provider)


def test_a_task_whose_time_is_over_in_an_outage_says_what_it_waited_for() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        task = await manager.wait_task(await manager.send_task("a", "go", timeout_seconds=50))
        assert task.error is not None
        assert (task.error.code, task.error.message) == (
            "deadline",
            f"The time for task {task.id} is over, and its model had not answered: {DOWN}",
        )
        await manager.flushed()
        step = (await manager.list_steps(task))[-1]
        assert step.error is not None
        assert step.error.message == f"The task was ended. The request before had failed: {DOWN}"

    play(scenario, Provider(up_at=600.0))


def test_an_agent_with_a_schedule_goes_on_after_an_outage() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"schedule": [{"interval_seconds": 10, "prompt": "look"}]})
        await asyncio.sleep(600)
        assert manager.get_agent_status("a").started
        assert (await manager.dead_letters()).tasks == []
        done = [task for task in await manager.list_tasks("a", limit=1000) if task.state is TaskState.COMPLETED]
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
        (step,) = await manager.list_steps(task.id)
        assert (step.error and step.error.message, step.retry_at) == (DOWN, status.retry_at)
        assert step.outage_seconds > 0
        ((shown,),) = [each.steps for each in (await manager.snapshot()).tasks]
        assert (shown.retry_at, shown.retry_reason) == (status.retry_at, DOWN)
        (told,) = [note for note in await manager.notifications() if note.name == "step.retried"]
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
        (step,) = await manager.list_steps(task.id)
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
    assert (await manager.get_task(task.id)).state is TaskState.RUNNING
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
