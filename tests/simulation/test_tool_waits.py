"""Tools whose own code waits for a task while they hold something: circles are refused, all else ends."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import calls, play, prompt_of, results_of, round_of


def by_prompt(request: ModelRequest) -> Answer | str:
    """The prompt says what to do: `use x`, `look x`, `ask b: use x`, or `have x b: use y`, which holds x meanwhile."""
    if round_of(request):
        return " | ".join(results_of(request))
    prompt = prompt_of(request).split("Question\n")[-1].strip()
    if prompt.startswith("have"):
        _, thing, rest = prompt.split(" ", 2)
        to, _, what = rest.partition(": ")
        return calls(("have", {"thing": thing, "agent": to, "prompt": what}))
    if prompt.startswith("ask"):
        to, _, what = prompt.removeprefix("ask ").partition(": ")
        return calls(("send_mail_with_switch", {"to_agent": to, "subject": "Question", "body": what}))
    kind, thing = prompt.split()[:2]
    return calls((kind, {"thing": thing}))


def tools_of(managers: list[AsyncAgentSessionManager]) -> list[Tool]:
    @tool(touches="write {thing}")
    async def have(thing: str, agent: str, prompt: str) -> str:
        """Have another agent do something, and hold a thing meanwhile."""
        return await managers[0].run_task(agent, prompt)

    @tool(touches="write {thing}")
    async def use(thing: str) -> str:
        """Use a thing for a while."""
        await asyncio.sleep(10)
        return f"used {thing}"

    @tool(touches="read {thing}")
    async def look(thing: str) -> str:
        """Look at a thing for a while."""
        await asyncio.sleep(10)
        return f"saw {thing}"

    return [have, use, look]


def answers_of(prompts: dict[str, str], *, within_seconds: float, seed: int = 0) -> dict[str, str]:
    """What the agents say in the end, each of which is told something a second after the one before."""
    managers: list[AsyncAgentSessionManager] = []
    said: dict[str, str] = {}

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in "abcd":
            await manager.create_agent(name, {"limits": {"max_concurrent_tasks": 3}})
        tasks = []
        for name, prompt in prompts.items():
            tasks.append(await manager.send_task(name, prompt))
            await asyncio.sleep(3)
        async with asyncio.timeout(within_seconds):
            for task in tasks:
                ended = await manager.wait_task(task)
                assert ended.state is TaskState.COMPLETED
                assert ended.result is not None
                said[task.agent_id] = ended.result.final
        assert manager.list_resources() == []
        assert not manager._session.cycles._tool_waits

    play(scenario, by_prompt, tools=tools_of(managers), seed=seed)
    return said


def test_a_tool_may_wait_for_another_agent_that_touches_something_else() -> None:
    said = answers_of({"a": "have x b: use y", "c": "use x"}, within_seconds=60)
    assert said == {"a": "used y", "c": "used x"}


def test_a_task_that_a_tool_waits_for_cannot_wait_for_what_the_tool_touches() -> None:
    said = answers_of({"a": "have x b: use x"}, within_seconds=30)
    assert said["a"].startswith("You cannot wait for x: a tool of another agent has it and waits for this very task")
    assert "(b → a → b)" in said["a"]


def test_the_circle_is_seen_over_other_tools_and_over_questions() -> None:
    over_tools = answers_of({"a": "have x b: have y c: use x"}, within_seconds=30)
    assert "(c → a → b → c)" in over_tools["a"]
    over_questions = answers_of({"a": "have x b: ask c: use x"}, within_seconds=30)
    assert "(c → a → b → c)" in over_questions["a"]


def test_the_circle_is_seen_over_one_that_waits_in_between() -> None:
    """b waits to write x; c, whom a waits for, would wait behind b to read it."""
    managers: list[AsyncAgentSessionManager] = []

    @tool(touches="read x")
    async def have_later(agent: str, prompt: str) -> str:
        """Look at x, and have another do something after a while."""
        await asyncio.sleep(20)
        return await managers[0].run_task(agent, prompt)

    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "a" and not round_of(request):
            return calls(("have_later", {"agent": "c", "prompt": "look x"}))
        return by_prompt(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in "abc":
            await manager.create_agent(name)
        first = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        second = await manager.send_task("b", "use x")
        ended = await manager.wait_task(first)
        assert ended.result is not None
        assert "(c → a → c)" in ended.result.final
        assert (await manager.wait_task(second)).state is TaskState.COMPLETED

    play(scenario, say, tools=[*tools_of(managers), have_later])


@pytest.mark.parametrize("seed", range(3))
def test_a_tool_cannot_begin_to_wait_for_a_task_that_waits_for_what_it_touches(seed: int) -> None:
    managers: list[AsyncAgentSessionManager] = []

    @tool(touches="write x")
    async def wait_for_b() -> str:
        """Wait for a task of b that waits already."""
        await asyncio.sleep(20)
        await managers[0].wait_task("of b")
        return "waited"

    def say(request: ModelRequest) -> Answer | str:
        return calls(("wait_for_b", {})) if request.agent_id == "a" and not round_of(request) else by_prompt(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        managers.append(manager)
        for name in "ab":
            await manager.create_agent(name)
        first = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        await manager.send_task("b", "use x", task_id="of b")
        ended = await manager.wait_task(first)
        assert ended.result is not None
        assert "This tool cannot wait for task of b" in ended.result.final
        assert "(a → b → a)" in ended.result.final
        assert (await manager.wait_task("of b")).state is TaskState.COMPLETED

    play(scenario, say, tools=[*tools_of(managers), wait_for_b], seed=seed)
