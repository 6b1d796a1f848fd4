"""Model requests are counted if they were made, with the time that they took and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.errors import ModelError, ModelServerError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from tests.simulation.stage import Say, Scenario, opened, play, until

SPENT = Answer(text="done", usage=Usage(input_tokens=50, output_tokens=50, cost_usd=0.5))


async def counts(manager: AsyncAgentSessionManager, task_id: str) -> set[tuple[int, float]]:
    """The requests and their seconds as the task, its tree, its agent and the session have it."""
    task = await manager.get_task(task_id)
    used = (
        task.usage,
        (await manager.usage(task_id)).total.usage,
        manager.get_agent_status(task.agent_id).usage,
        (await manager.usage()).total.usage,
    )
    return {(each.model_calls, round(each.wall_seconds, 3)) for each in used}


def play_and_open_again(scenario: Scenario, say: Say, then: Scenario) -> None:
    disk = SimulatedDisk(0)

    async def main() -> None:
        for each in (scenario, then):
            store = disk.open()
            async with opened(store, say) as manager:
                await each(manager)
            await store.close()

    simulate(main(), seed=0)
    disk.close()


def test_a_pause_before_a_request_is_no_work() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"tools": [], "limits": {"max_tokens_per_agent": 180}})
        await manager.run_task("a", "spend")
        await manager.send_task("a", "go", task_id="t")
        await until(lambda: manager.get_agent_status("a").state is AgentState.PAUSED)
        await asyncio.sleep(36_000)
        await manager.set_limits({"max_tokens_per_agent": 10_000}, agent_id="a")
        ended = await manager.wait_task("t")
        assert (ended.usage.model_calls, round(ended.usage.wall_seconds, 3)) == (1, 1.0)

    play(scenario, lambda _: SPENT)


def test_the_wait_between_two_attempts_is_no_work() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.attempt == 1:
            raise ModelServerError("try again")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"retry": {"first_delay_seconds": 100, "max_delay_seconds": 100}})
        await manager.send_task("a", "go", task_id="t")
        await manager.at_rest()
        assert await counts(manager, "t") == {(2, 2.0)}

    play(scenario, say)


async def refuse_by_context(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("a", {"limits": {"max_context_bytes": 10}})


async def refuse_by_price(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("a", {"limits": {"max_cost_usd_per_agent": 1.0}})
    await manager.run_task("a", "what has no price")


@pytest.mark.parametrize(("made", "refuse"), [(0, refuse_by_context), (1, refuse_by_price)])
def test_a_request_that_was_refused_is_not_counted(
    made: int, refuse: Callable[[AsyncAgentSessionManager], Awaitable[None]]
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await refuse(manager)
        ended = await manager.wait_task(await manager.send_task("a", "this is too much"))
        assert ended.error is not None
        assert (await manager.usage()).total.usage.model_calls == made

    play(scenario, lambda _: Answer(text="done", usage=Usage(input_tokens=50)))


def test_a_task_that_is_taken_up_again_keeps_the_requests_that_failed() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.step_id)
        if len(asked) < 3:
            raise ModelError("no")
        return SPENT

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.send_task("a", "go", task_id="t")
        for made in (1, 2, 3):
            await manager.wait_task("t")
            assert await counts(manager, "t") == {(made, made * 1.0)}
            if made < 3:
                await manager.retry_task("t")
                assert await counts(manager, "t") == {(made, made * 1.0)}
        assert (await manager.get_task("t")).usage.cost_usd == 0.5

    async def then(manager: AsyncAgentSessionManager) -> None:
        assert await counts(manager, "t") == {(3, 3.0)}
        assert len(asked) == 3

    play_and_open_again(scenario, say, then)


def test_a_task_between_two_attempts_has_the_same_counts_after_a_restart() -> None:
    def say(request: ModelRequest) -> Answer | str:
        raise ModelServerError("try again")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"retry": {"first_delay_seconds": 1000, "max_delay_seconds": 1000}})
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(100)
        assert await counts(manager, "t") == {(1, 1.0)}

    async def then(manager: AsyncAgentSessionManager) -> None:
        assert await counts(manager, "t") == {(1, 1.0)}

    play_and_open_again(scenario, say, then)


@pytest.mark.parametrize("how", ["interrupt_agent", "stop_agent"])
def test_a_request_that_was_cut_off_was_made(how: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(0.75)
        await getattr(manager, how)("a")
        assert [made for made, _ in await counts(manager, "t")] == [1]

    async def then(manager: AsyncAgentSessionManager) -> None:
        assert [made for made, _ in await counts(manager, "t")] == [1]

    play_and_open_again(scenario, lambda _: SPENT, then)
