"""Agents that are paused for a limit: when they go on, and who lets them."""

from __future__ import annotations

import asyncio
import random

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import VirtualClock, simulate
from tests.simulation.stage import call, opened, play, prompt_of, round_of, until

LIMITED = {"limits": {"max_concurrent_tasks": 2}}


@tool
async def linger() -> str:
    """Take long to begin, and long to end."""
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        await asyncio.sleep(10)
        raise
    return "done"


def say(request: ModelRequest) -> Answer:
    if prompt_of(request) == "linger" and not round_of(request):
        return call("linger")
    return Answer(text="done", usage=Usage(input_tokens=500, output_tokens=500))


async def pause_for_want_of_tokens(manager: AsyncAgentSessionManager) -> None:
    """An agent that is paused for the session's tokens, while a tool of it is under way."""
    await manager.create_agent("a", LIMITED)
    await manager.set_limits({"max_tokens": 2_000})
    await manager.send_task("a", "linger")
    await asyncio.sleep(5)
    await manager.run_task("a", "spend")
    await manager.send_task("a", "more", task_id="more")
    await until(lambda: manager.get_agent_status("a").state is AgentState.PAUSED)


def tokens_of(manager: AsyncAgentSessionManager) -> float:
    return next(each.value for each in manager.get_limits().limits if each.name == "max_tokens")


def test_limits_can_be_raised_while_an_agent_that_they_paused_is_being_stopped() -> None:
    disk = SimulatedDisk(0)

    async def main() -> None:
        store = disk.open()
        async with opened(store, say, tools=[linger]) as manager:
            await pause_for_want_of_tokens(manager)
            await manager.create_agent("b")
            other = await manager.send_task("b", "more")
            await until(lambda: manager.get_agent_status("b").state is AgentState.PAUSED)
            stop = asyncio.ensure_future(manager.stop_agent("a"))
            await asyncio.sleep(1)
            await manager.set_limits({"max_tokens": 5_000})
            assert (await manager.wait_task(other)).state is TaskState.COMPLETED, "the others go on"
            await stop
            assert manager.get_agent_status("a").state is AgentState.STOPPED
        await store.close()
        store = disk.open()
        async with opened(store, say, tools=[linger]) as manager:
            assert tokens_of(manager) == 5_000
        await store.close()

    simulate(main(), seed=0)
    disk.close()


def test_an_agent_whose_stop_is_given_up_goes_on_if_its_limit_was_raised_meanwhile() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await pause_for_want_of_tokens(manager)
        stop = asyncio.ensure_future(manager.stop_agent("a"))
        await asyncio.sleep(1)
        await manager.set_limits({"max_tokens": 5_000})
        stop.cancel()
        assert (await manager.wait_task("more")).state is TaskState.COMPLETED

    play(scenario, say, tools=[linger])


@pytest.mark.parametrize(("raised", "state"), [(1_500, AgentState.PAUSED), (5_000, AgentState.IDLE)])
def test_an_agent_goes_on_when_its_limit_was_raised_by_the_settings_and_a_restart(
    raised: int, state: AgentState
) -> None:
    disk = SimulatedDisk(0)

    async def live(tokens: int, state: AgentState) -> None:
        store = disk.open()
        manager = AsyncAgentSessionManager(
            store=store,
            model_factory=lambda _: FunctionModel(say, latency_seconds=1),
            templates=(),
            clock=VirtualClock(),
            random=random.Random(0),
            limits={"max_tokens": tokens},
        )
        async with manager:
            if not manager.list_agents():
                await manager.create_agent("a")
                await manager.run_task("a", "spend")
                await manager.send_task("a", "more")
            await asyncio.sleep(100)
            assert manager.get_agent_status("a").state is state
        await store.close()

    async def main() -> None:
        await live(1_500, AgentState.PAUSED)
        await live(raised, state)

    simulate(main(), seed=0)
    disk.close()


def test_an_agent_that_a_person_paused_stays_so_whatever_the_reason_says() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.pause_agent("a", reason="A limit is reached: of my patience.")
        await manager.set_limits({"max_tokens": 5_000})
        assert manager.get_agent_status("a").state is AgentState.PAUSED

    play(scenario, say)


@pytest.mark.parametrize(("name", "whole"), [("max_tokens_per_agent", False), ("max_tokens", True)])
def test_an_agent_whose_request_does_not_fit_stays_paused_until_it_does(name: str, whole: bool) -> None:  # noqa: FBT001
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        owner = None if whole else "a"
        await manager.set_limits({name: 200}, agent_id=owner)
        task = await manager.send_task("a", "x" * 4_000)
        await asyncio.sleep(5)
        assert manager.get_agent_status("a").state is AgentState.PAUSED
        seq = manager.last_seq
        await manager.set_limits({"max_queue_length": 123})
        await manager.set_limits({name: 300}, agent_id=owner)
        await asyncio.sleep(5)
        told = [note.name for note in await manager.notifications(after=seq)]
        assert set(told) <= {"limits.changed", "agent.redefined"}, "neither resumed nor paused again"
        await manager.set_limits({name: 100_000}, agent_id=owner)
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    play(scenario)
