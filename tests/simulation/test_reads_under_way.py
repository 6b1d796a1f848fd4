"""What is known of tasks while a read of the store is under way that began before they changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from tests.simulation.provider import now
from tests.simulation.stage import Scenario, opened


def refusing(request: ModelRequest) -> str:
    """Refuses all for a minute."""
    del request
    if now() < 60:
        raise ModelRefusedError("No.")
    return "done"


@asynccontextmanager
async def an_old_read(manager: AsyncAgentSessionManager) -> AsyncIterator[None]:
    """Within, a read is under way that began before."""
    read = asyncio.ensure_future(manager.list_events())
    await asyncio.sleep(0)
    yield
    assert not read.done()
    read.cancel()


def play(scenario: Scenario) -> None:
    """Play it on a store that never answers what events there were."""
    disk = SimulatedDisk()

    async def never(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        store = disk.open()
        store.events = never  # type: ignore[method-assign]
        async with opened(store, refusing) as manager:
            await manager.create_agent("a", {"supervision": {"max_failures": 100}})
            await scenario(manager)
        await store.close()

    simulate(main(), seed=0)
    disk.close()


def test_a_task_that_was_retried_and_failed_again_can_be_retried_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        task = await manager.send_task("a", "x")
        await manager.wait_task(task)
        async with an_old_read(manager):
            for _ in range(3):
                await manager.retry_task(task)
                assert (await manager.wait_task(task)).state is TaskState.FAILED
            retried = await manager.retry_failed_tasks()
            assert retried.task_ids == (task.id,)

    play(scenario)


def test_a_task_that_was_dismissed_can_be_retried() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        task = await manager.send_task("a", "x")
        await manager.wait_task(task)
        async with an_old_read(manager):
            await manager.dismiss_task(task)
            await asyncio.sleep(60)
            await manager.retry_task(task)
            assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    play(scenario)


def test_a_task_that_was_dismissed_and_retried_is_known_as_it_ended_last() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        async with an_old_read(manager):
            task = await manager.send_task("a", "x")
            await manager.wait_task(task)
            await manager.dismiss_task(task)
            await manager.flushed()
        await asyncio.sleep(60)
        await manager.retry_task(task)
        await manager.wait_task(task)
        assert (await manager.get_task(task)).state is TaskState.COMPLETED

    play(scenario)
