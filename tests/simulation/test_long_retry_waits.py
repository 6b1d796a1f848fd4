"""A provider that asks to be left alone for too long: what is waited, what is told, who goes on meanwhile."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.errors import ModelRateLimitError
from ai_whisperer.models.base import Finished, Model, TextDelta
from tests.simulation.stage import play, play_over_crash
from tests.simulation.test_limits_of_work import told_of
from tests.simulation.test_model_faults import GOOD, Event, StreamModel, with_model

FOREVER = ModelRateLimitError("The provider asks for fewer requests.", retry_after_seconds=1e9)


def _models(**models: Model) -> dict[str, Any]:
    return {"models": lambda name: models[name]}


def _seconds() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("asked", [1e9, 1e300, math.inf, 10**400])
def test_a_wait_that_is_too_long_is_cut_and_told_with_what_was_asked_for(asked: float) -> None:
    model = StreamModel([ModelRateLimitError("Slow down.", retry_after_seconds=asked)], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        begun = _seconds()
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        (step,) = await manager.list_steps(task.id)
        assert step.error is not None
        assert step.retry_at is not None
        wanted = f"The provider asks to wait for {min(asked, 1e15):,.0f} seconds; it is asked again after 3,600 "
        assert step.error.message == f"Slow down. {wanted}(max_retry_after_seconds)."
        (note,) = [note for note in await manager.notifications() if note.name == "step.retried"]
        assert note.params["retryAfterSeconds"] == min(asked, 1e15)
        assert note.params["retryAt"] == step.retry_at
        assert note.params["error"]["message"] == step.error.message
        (told,) = await told_of(manager, "max_retry_after_seconds")
        assert (told["used"], told["max"], told["action"]) == (min(asked, 1e15), 3_600.0, "cut")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert 3_600 <= _seconds() - begun < 3_610

    play(scenario, models=with_model(model))


@pytest.mark.parametrize("asked", [math.nan, -1e9, -math.inf])
def test_a_wait_that_makes_no_sense_is_none(asked: float) -> None:
    model = StreamModel([ModelRateLimitError(retry_after_seconds=asked)], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        begun = _seconds()
        await manager.run_task("alice", "go")
        assert _seconds() - begun < 3
        (note,) = [note for note in await manager.notifications() if note.name == "step.retried"]
        assert "retryAfterSeconds" not in note.params

    play(scenario, models=with_model(model))


@pytest.mark.parametrize("where", ["session", "agent"])
def test_the_longest_wait_is_stated_like_any_other_limit(where: str) -> None:
    model = StreamModel([FOREVER], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        if where == "session":
            await manager.set_limits({"max_retry_after_seconds": 90})
        await manager.create_agent("alice", {"limits": {"max_retry_after_seconds": 90}} if where == "agent" else {})
        begun = _seconds()
        await manager.run_task("alice", "go")
        assert 90 <= _seconds() - begun < 95

    play(scenario, models=with_model(model))


def test_a_task_that_waits_for_its_provider_holds_no_place_that_others_need() -> None:
    bad, good = StreamModel([FOREVER], GOOD), StreamModel(GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_concurrent_loops": 1})
        await manager.create_agent("a", {"model": "bad"})
        await manager.create_agent("b", {"model": "good"})
        waiting = await manager.send_task("a", "go")
        await asyncio.sleep(10)
        begun = _seconds()
        assert [await manager.run_task("b", "go") for _ in range(3)] == ["fine"] * 3
        assert _seconds() - begun < 10
        assert (await manager.wait_task(waiting)).state is TaskState.COMPLETED

    play(scenario, **_models(bad=bad, good=good))


def test_a_task_that_waits_for_its_provider_holds_no_tokens_that_others_need() -> None:
    bad, good = StreamModel([FOREVER], GOOD), StreamModel(GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 5_000})  # as much as one request may use
        await manager.create_agent("a", {"model": "bad"})
        await manager.create_agent("b", {"model": "good"})
        waiting = await manager.send_task("a", "go")
        await asyncio.sleep(10)
        begun = _seconds()
        assert await manager.run_task("b", "go") == "fine"
        assert _seconds() - begun < 10
        assert (await manager.wait_task(waiting)).state is TaskState.COMPLETED

    play(scenario, **_models(bad=bad, good=good))


def test_the_attempt_after_a_wait_is_on_the_budget_like_the_first() -> None:
    events: list[Event] = [TextDelta(text="fine"), Finished()]
    model = StreamModel([FOREVER], events)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go", budget=Budget(max_tokens=5_000))
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert model.asked == [1, 2]

    play(scenario, models=with_model(model))


@pytest.mark.parametrize("deed", ["cancel", "stop", "pause"])
def test_whoever_waits_for_a_provider_can_be_stopped_at_once(deed: str) -> None:
    model = StreamModel([FOREVER], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        begun = _seconds()
        if deed == "cancel":
            await manager.cancel_task(task)
            assert (await manager.wait_task(task)).state is TaskState.CANCELLED
        elif deed == "pause":
            await manager.pause_agent("alice")
        else:
            await manager.stop_agent("alice")
        assert _seconds() - begun < 1
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        assert model.asked == [1]
        assert await manager.run_task((await manager.create_agent("bob")).agent_id, "go") == "fine"

    play(scenario, models=with_model(model))


def test_an_agent_that_was_paused_meanwhile_does_not_begin_to_wait_for_its_provider() -> None:
    model = StreamModel([10.0, FOREVER], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        await manager.pause_agent("alice")
        await asyncio.sleep(6)
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        await manager.resume_agent("alice")
        begun = _seconds()
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert 3_590 < _seconds() - begun < 3_610

    play(scenario, models=with_model(model))


def test_a_session_that_closes_does_not_begin_to_wait_for_a_provider() -> None:
    model = StreamModel([10.0, FOREVER], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        begun = _seconds()
        await manager.close(grace_seconds=60)
        assert _seconds() - begun < 10

    play(scenario, models=with_model(model))


def test_a_restart_in_a_long_wait_goes_on_with_the_rest_of_it() -> None:
    model = StreamModel([FOREVER], GOOD)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.wait_task(await manager.send_task("alice", "go"))

    async def after(manager: AsyncAgentSessionManager) -> None:
        begun = _seconds()
        (task,) = await manager.list_tasks()
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert 2_350 < _seconds() - begun < 2_450
        assert model.asked == [1, 2]

    play_over_crash(before, after, crash_after_seconds=1_000, down_for_seconds=200, models=with_model(model))


def test_a_clock_that_was_set_back_makes_no_wait_longer_than_the_longest() -> None:
    model = StreamModel([FOREVER], GOOD)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.wait_task(await manager.send_task("alice", "go"))

    async def after(manager: AsyncAgentSessionManager) -> None:
        begun = _seconds()
        (task,) = await manager.list_tasks()
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert _seconds() - begun < 3_700

    play_over_crash(before, after, crash_after_seconds=1_000, down_for_seconds=-1e6, models=with_model(model))
