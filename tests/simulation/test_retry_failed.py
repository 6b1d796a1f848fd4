"""All failed tasks are retried with one call."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.errors import (
    ModelRefusedError,
    UnknownAgentError,
)
from ai_whisperer.models.base import ModelRequest
from tests.simulation.provider import ended, now
from tests.simulation.stage import play, prompt_of


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
        assert (await manager.get_task(dismissed.id)).state is TaskState.FAILED
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
