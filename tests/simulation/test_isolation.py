"""Loops of one agent run side by side and cannot see each other; they meet only through mail."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from ai_whisperer import AsyncAgentSessionManager, ToolContext, tool
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolResult, ToolTurn, UserTurn
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import call, play, prompt_of, results_of, round_of, until

_note: ContextVar[str] = ContextVar("note", default="nothing")


def _everything_shown(request: ModelRequest) -> str:
    texts: list[str] = []
    for turn in request.turns:
        match turn:
            case UserTurn():
                texts.append(turn.text)
            case AnswerTurn():
                texts.append(turn.answer.text + str(turn.answer.tool_calls))
            case ToolTurn():
                texts.append(turn.content)
    return "\n".join(texts)


@tool
async def remember(secret: str, context: ToolContext) -> str:
    """Set a variable of this loop, wait for the other loop to do so, and say what the variable is."""
    before = _note.get()
    _note.set(secret)
    await asyncio.sleep(5)
    return f"was {before}, is {_note.get()} in {context.task_id}"


def test_two_loops_of_one_agent_see_neither_the_history_nor_the_variables_of_each_other() -> None:
    seen: dict[str, list[str]] = {"red": [], "blue": []}

    def say(request: ModelRequest) -> Answer | str:
        colour = "red" if "red" in prompt_of(request) else "blue"
        seen[colour].append(_everything_shown(request))
        if round_of(request) < 2:
            return call("remember", secret=f"{colour}-{round_of(request)}")
        return "; ".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_concurrent_tasks": 2}})
        red, blue = await asyncio.gather(
            manager.send_task("a", "the red matter", task_id="task-red", thread_id="red-thread"),
            manager.send_task("a", "the blue matter", task_id="task-blue", thread_id="blue-thread"),
        )
        ended = await asyncio.gather(manager.wait_task(red), manager.wait_task(blue))
        assert ended[0].started_at == ended[1].started_at, "they ran at the same time"
        finals = [task.result.final for task in ended if task.result]
        assert finals[0] == "was nothing, is red-0 in task-red; was red-0, is red-1 in task-red"
        assert finals[1] == "was nothing, is blue-0 in task-blue; was blue-0, is blue-1 in task-blue"
        assert not any("blue" in text for text in seen["red"])
        assert not any("red" in text for text in seen["blue"])
        await manager.run_task("a", "the red matter again", thread_id="red-thread")
        assert "task-red" in seen["red"][-1], "the later task of a thread knows the earlier one"
        assert "blue" not in seen["red"][-1]

    play(scenario, say, tools=[remember])


def test_a_loop_sees_no_variables_of_the_one_that_made_way_for_it_or_mailed_it() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("remember", secret=f"secret of {request.agent_id}")
        if round_of(request) == 1 and request.agent_id == "a" and "third" in prompt_of(request):
            return call("send_mail", to_agent="b", subject="s", body="b")
        return results_of(request)[0]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.create_agent("b")
        tasks = [await manager.send_task("a", prompt) for prompt in ("first", "second", "third")]
        for task in tasks:
            ended = await manager.wait_task(task)
            assert ended.result is not None
            assert ended.result.final.startswith("was nothing, ")

        async def is_so() -> bool:
            return any(task.result for task in await manager.list_tasks("b"))

        await until(is_so)
        mailed = (await manager.list_tasks("b"))[0].result
        assert mailed is not None
        assert mailed.final.startswith("was nothing, ")

    play(scenario, say, tools=[remember])


def test_two_agents_of_one_definition_share_nothing() -> None:
    heard: dict[str, str] = {}

    def say(request: ModelRequest) -> Answer | str:
        heard[request.agent_id] = _everything_shown(request)
        return call("remember", secret=request.agent_id) if round_of(request) == 0 else results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("one", "two"):
            await manager.create_agent(name)
        finals = await asyncio.gather(*(manager.run_task(name, f"for {name}") for name in ("one", "two")))
        assert [final.partition(" in ")[0] for final in finals] == ["was nothing, is one", "was nothing, is two"]
        assert "two" not in heard["one"]
        assert "one" not in heard["two"]

    play(scenario, say, tools=[remember])


def test_loops_of_one_agent_meet_through_the_mail_of_another() -> None:
    def say(request: ModelRequest) -> Answer | str:
        prompt = prompt_of(request)
        if request.agent_id == "postman":
            mail = call("send_mail", to_agent="a", subject="word", body="the word is salt")
            return mail if round_of(request) == 0 else "carried"
        if "wait for the word" in prompt:
            deeds = [call("nap"), call("check_mail")]
            return deeds[round_of(request)] if round_of(request) < 2 else results_of(request)[-1]
        return "started"

    @tool
    async def nap() -> str:
        """Wait a while."""
        await asyncio.sleep(60)
        return "rested"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"limits": {"max_concurrent_tasks": 1}})
        await manager.create_agent("postman")
        waiting = await manager.send_task("a", "wait for the word")
        await manager.run_task("postman", "carry it")
        ended = await manager.wait_task(waiting)
        assert ended.result is not None
        assert "the word is salt" in ended.result.final

    play(scenario, say, tools=[nap])


class Curious(Tool):
    """A tool with a call of its own."""

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        assert arguments == "{}"
        return ToolResult(content=f"The agent has a workplace: {context.workplace is not None}.")


def test_a_tool_with_a_call_of_its_own_is_given_the_whole_context() -> None:
    def look() -> str:
        """Look around."""
        raise AssertionError("It is called another way.")

    def say(request: ModelRequest) -> Answer | str:
        return "; ".join(results_of(request)) if round_of(request) else call("look")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        assert await manager.run_task("a", "go") == "The agent has a workplace: True."

    play(scenario, say, tools=[Curious(look)])
