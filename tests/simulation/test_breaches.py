"""Limits that are reached: what is announced and counted, and what is not taken for one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer, ToolResult, ToolRun
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import LimitError, ToolError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, round_of


async def told_of(manager: AsyncAgentSessionManager, limit: str) -> list[dict[str, Any]]:
    await manager.flushed()
    notes = [note.params for note in await manager.notifications(limit=100_000) if note.name == "limit.reached"]
    return [params for params in notes if params["limit"] == limit]


def test_refused_starts_under_ever_new_names_are_counted_as_one_and_take_no_memory() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_started_agents": 0})
        for number in range(50):
            with pytest.raises(LimitError):
                await manager.create_agent(f"a{number}")
        breaches = manager._session.reached
        assert (len(breaches._told), len(breaches._counts)) == (1, 1)
        assert manager.limits_reached == {"max_started_agents": 50}
        [told] = await told_of(manager, "max_started_agents")
        assert told["agentId"] == "a0"

    play(scenario)


def test_a_question_that_is_too_deep_is_announced() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request):
            return "done"
        number = int(request.agent_id[1:])
        return call("send_mail_with_switch", to_agent=f"a{number + 1}", subject="well?", body="well?")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for number in range(3):
            await manager.create_agent(f"a{number}", {"limits": {"max_switch_depth": 1}})
        await manager.run_task("a0", "go")
        [told] = await told_of(manager, "max_switch_depth")
        assert (told["agentId"], told["used"], told["max"], told["action"]) == ("a1", 1, 1, "refused")

    play(scenario, say)


def test_a_result_that_is_cut_is_announced() -> None:
    @tool
    async def talk() -> str:
        """Say a lot."""
        return "x" * 1000

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_result_bytes": 100}})
        task = await manager.send_task("a", "go")
        await manager.wait_task(task)
        [told] = await told_of(manager, "max_result_bytes")
        assert (told["taskId"], told["used"], told["max"], told["action"]) == (task.id, 1000, 100, "cut")

    play(scenario, lambda request: "done" if round_of(request) else call("talk"), tools=[talk])


@pytest.mark.parametrize("way", ["raises", "returns"])
def test_a_tool_that_says_it_was_not_run_again_is_no_circle(way: str) -> None:
    @tool
    async def grumble(number: int) -> ToolResult:
        """Say what the runtime says of calls that go in circles."""
        if way == "raises":
            raise ToolError("Not run again: the road is closed.")
        return ToolResult(content="Not run again: the road is closed.", is_error=True, not_run=True)

    def say(request: ModelRequest) -> Answer | str:
        return "done" if round_of(request) == 20 else call("grumble", number=round_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_same_calls": 3}})
        ended = await manager.wait_task(await manager.send_task("a", "go"))
        assert ended.state is TaskState.COMPLETED

    play(scenario, say, tools=[grumble])


def test_one_that_fails_at_its_turn_does_not_hold_the_line_up() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        places = manager._session.slots
        await manager.set_limits({"max_concurrent_loops": 1})
        places.take()
        served: list[str] = []

        def fail() -> None:
            raise RuntimeError("a fault")

        failures: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))
        assert not places.may_begin("first", "a", fail)
        assert not places.may_begin("second", "b", lambda: served.append("second"))
        places.give_back()
        await asyncio.sleep(1)
        assert served == ["second"]
        assert [str(failure) for failure in failures] == ["a fault"]

    play(scenario)


def test_a_program_that_is_ended_for_a_limit_is_announced_with_the_numbers() -> None:
    @tool
    async def burn(limit: str) -> ToolResult:
        """Take too much."""
        run = ToolRun(sandbox="none", limit=limit, cpu_seconds=7.0, wall_seconds=9.0)
        return ToolResult(content="ended", is_error=True, run=run)

    def say(request: ModelRequest) -> Answer | str:
        limits = ["max_tool_cpu_seconds", "max_tool_processes", "nonsense"]
        return call("burn", limit=limits[round_of(request)]) if round_of(request) < 3 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_tool_cpu_seconds": 5, "max_tool_processes": 8}})
        await manager.run_task("a", "go")
        told = [note.params for note in await manager.notifications() if note.name == "limit.reached"]
        assert [(each["limit"], each["used"], each["max"], each["action"]) for each in told] == [
            ("max_tool_cpu_seconds", 7.0, 5, "failed"),
            ("max_tool_processes", 8, 8, "failed"),
        ]

    play(scenario, say, tools=[burn])
