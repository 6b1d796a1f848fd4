"""Waiting until no agent has anything left to do."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import ClosedError, StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, play_over_crash, prompt_of, round_of


async def is_over_at_once(manager: AsyncAgentSessionManager) -> bool:
    """Whether the agents are at rest: no more time passes than a commit takes."""
    before = asyncio.get_running_loop().time()
    await manager.at_rest()
    return asyncio.get_running_loop().time() - before < 0.5


def test_it_is_over_when_the_last_of_a_chain_of_agents_has_nothing_left_to_do() -> None:
    def say(request: ModelRequest) -> Answer | str:
        following = {"a": "b", "b": "c"}.get(request.agent_id)
        return (
            call("send_mail", to_agent=following, subject="go", body="on")
            if following and not round_of(request)
            else "ok"
        )

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in "abc":
            await manager.create_agent(name)
        await manager.send_task("a", "go")
        await manager.at_rest()
        assert [status.state for status in manager.list_agents()] == [AgentState.IDLE] * 3
        (last,) = await manager.list_tasks("c")
        assert last.state is TaskState.COMPLETED
        assert asyncio.get_running_loop().time() < 10

    play(scenario, say)


def test_it_is_over_at_once_when_nothing_is_to_be_done() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert await is_over_at_once(manager)
        await manager.create_agent("alice")
        assert await is_over_at_once(manager)
        await manager.send_task("alice", "go")
        assert not await is_over_at_once(manager)
        assert await is_over_at_once(manager)

    play(scenario)


def test_agents_that_wait_for_somebody_to_let_them_go_on_are_at_rest_whatever_waits_for_them() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("created", "paused", "asleep", "stopped"):
            await manager.create_agent(name, auto_start=name != "created")
        await manager.pause_agent("paused")
        await manager.sleep_agent("asleep", wake_events=["never"])
        await manager.stop_agent("stopped")
        for name in ("created", "paused", "asleep", "stopped"):
            await manager.send_task(name, "go")
        assert await is_over_at_once(manager)

    play(scenario)


def test_an_agent_that_is_paused_or_stopped_meanwhile_is_no_longer_waited_for() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("alice", "bob"):
            await manager.create_agent(name)
            await manager.send_task(name, "go")
        waiting = asyncio.ensure_future(manager.at_rest())
        await asyncio.sleep(1)
        assert not waiting.done()
        await manager.pause_agent("alice")
        await manager.stop_agent("bob")
        async with asyncio.timeout(1):
            await waiting

    play(scenario, latency_seconds=1000)


def test_an_agent_without_its_tools_is_at_rest_after_a_restart() -> None:
    async def own() -> str:
        """Do it."""
        await asyncio.sleep(1000)
        return "never"

    def say(request: ModelRequest) -> Answer | str:
        return call("own") if "own" in prompt_of(request) else "done"

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", tools=[own])
        await manager.send_task("alice", "use your own")
        await manager.send_task("alice", "and more")
        await asyncio.sleep(100)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("alice").state is AgentState.ACTIVE
        assert await is_over_at_once(manager)

    play_over_crash(before, after, say, crash_after_seconds=10)


def test_whoever_waits_is_told_when_the_session_is_closed() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "go")
        waiting = asyncio.ensure_future(manager.at_rest())
        await asyncio.sleep(1)
        await manager.close()
        with pytest.raises(ClosedError, match="closed before"):
            await waiting

    play(scenario, latency_seconds=1000)


def test_a_tool_is_told_that_it_cannot_wait_for_its_own_agent() -> None:
    managers: list[AsyncAgentSessionManager] = []

    async def wait() -> str:
        """Wait for everybody."""
        with pytest.raises(StateError, match="its own agent is not"):
            await managers[0].at_rest()
        return "told"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await manager.wait_task(task)
        assert "told" in str((await manager.list_steps(task.id))[1].result)

    play(scenario, lambda request: "done" if round_of(request) else call("wait"), tools=[wait])
