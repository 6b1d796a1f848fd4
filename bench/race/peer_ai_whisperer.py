"""AI Whisperer in the race."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from ai_whisperer import AsyncAgentSessionManager, TaskRecord, TaskState, tool
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn, UserTurn
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of


class _FakeModel:
    """Asks the course what to look up next."""

    def __init__(self, course: Course) -> None:
        self._course = course

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        begin = max(number for number, turn in enumerate(request.turns) if isinstance(turn, UserTurn))
        prompt = request.turns[begin]
        assert isinstance(prompt, UserTurn)
        called = sum(isinstance(turn, ToolTurn) for turn in request.turns[begin:])
        fact = await self._course.next_fact(prompt.text, called)
        answer = FINAL if fact is None else _call(request, "look_up", fact=fact)
        async for event in FunctionModel(lambda _: answer).stream(request):
            yield event

    async def close(self) -> None:
        """There is nothing to close."""


async def messages(course: Course) -> int:
    """Pairs of agents: one asks the other and waits, again and again; a question and its answer are two messages."""
    questions = course.hops // 2

    def answer(request: ModelRequest) -> Answer | str:
        course.asked()
        side, _, pair = request.agent_id.partition("-")
        asked = sum(isinstance(turn, ToolTurn) for turn in request.turns)
        if side == "answers" or asked == questions:
            return BODY
        return _call(request, "send_mail_with_switch", to_agent=f"answers-{pair}", subject="Next", body=BODY)

    model = FunctionModel(answer)
    async with AsyncAgentSessionManager(_folder(course), model_factory=lambda _: model) as manager:
        for pair in range(PAIRS):
            await manager.create_agent(f"asks-{pair}")
            await manager.create_agent(f"answers-{pair}")
        with course.measured():
            ended = await asyncio.gather(*(_task(manager, f"asks-{pair}", "Begin.") for pair in range(PAIRS)))
        sent = [await manager.sent_mail(f"asks-{pair}", limit=questions + 1) for pair in range(PAIRS)]
        assert all(task.state is TaskState.COMPLETED for task in ended)
        return 2 * sum(map(len, sent))


async def tasks(course: Course) -> int:
    model = _FakeModel(course)
    async with AsyncAgentSessionManager(
        _folder(course), tools=[course.look_up], model_factory=lambda _: model
    ) as manager:
        made = [*course.tasks, *course.warm_up]
        await asyncio.gather(*map(manager.create_agent, made))
        await asyncio.gather(*(_task(manager, name, prompt_of(name)) for name in course.warm_up))
        with course.measured():
            ended = await asyncio.gather(*(_task(manager, name, prompt_of(name)) for name in course.tasks))
    return sum(task.state is TaskState.COMPLETED for task in ended)


async def agents(course: Course) -> int:
    """Created, started and on disk."""
    model = _FakeModel(course)
    async with AsyncAgentSessionManager(course.folder, model_factory=lambda _: model) as manager:

        async def create(number: int) -> None:
            await manager.create_agent(f"agent-{number}", tools=tools_of(number))

        await create(course.size)
        with course.measured():
            await asyncio.gather(*map(create, range(course.size)))
            for number in range(course.size) if course.used else ():
                assert await manager.run_task(f"agent-{number}", USED_PROMPT) == FINAL
        return sum(agent.record.started for agent in manager.active_sessions.values()) - 1


async def restart(course: Course) -> int:
    """Nothing is called to resume: opening the folder does it.

    The others repeat a tool call that may have been made already; so the tool says that it may be repeated.
    """
    model = _FakeModel(course)

    @tool(idempotent=True)
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    course.tell("opening")
    async with AsyncAgentSessionManager(course.folder, tools=[look_up], model_factory=lambda _: model) as manager:
        with course.measured():
            if course.fresh:
                await asyncio.gather(*map(manager.create_agent, course.tasks))

                async def send(name: str) -> None:
                    await manager.send_task(name, prompt_of(name), task_id=name)
                    course.tell("accepted", name)

                await asyncio.gather(*map(send, course.tasks))
            ended = await asyncio.gather(*map(manager.wait_task, course.tasks))
    return sum(task.state is TaskState.COMPLETED for task in ended)


async def _task(manager: AsyncAgentSessionManager, agent: str, prompt: str) -> TaskRecord:
    return await manager.wait_task(await manager.send_task(agent, prompt))


def _call(request: ModelRequest, name: str, **arguments: str) -> Answer:
    return Answer(tool_calls=(ToolCall(call_id=request.step_id, name=name, arguments=json.dumps(arguments)),))


def _folder(course: Course) -> str | None:
    return str(course.folder) if course.durable else None


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
