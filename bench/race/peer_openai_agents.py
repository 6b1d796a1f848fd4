"""OpenAI Agents SDK in the race: `Runner.run`, and `SQLiteSession` where work is durable.

A session keeps the conversation. There is no call that resumes a run whose process died, so a run is begun again on the
conversation that was kept.
"""

from __future__ import annotations

import asyncio
import json

from agents import Agent, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from agents.models.interface import Model
from agents.testing import assistant_message, function_call

from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of

QUIET = RunConfig(tracing_disabled=True)


class FakeModel(Model):
    def __init__(self, course: Course) -> None:
        self._course = course

    async def get_response(self, system_instructions, input, *_, **__):
        if isinstance(input, str):
            input = [{"role": "user", "content": input}]
        called = sum(each.get("type") == "function_call_output" for each in input)
        prompt = next(each["content"] for each in input if each.get("role") == "user")
        fact = await self._course.next_fact(prompt, called)
        return _response(assistant_message(FINAL) if fact is None else _call("look_up", fact, fact=fact))

    def stream_response(self, *_, **__):
        raise NotImplementedError


class HandingOff(Model):
    """Hands off to the other agent until so many messages have passed."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._left = course.hops
        self.handed = 0

    async def get_response(self, system_instructions, input, model_settings, tools, output_schema, handoffs, *_, **__):
        self._course.asked()
        if self.handed == self._left:
            return _response(assistant_message(BODY))
        self.handed += 1
        return _response(_call(handoffs[0].tool_name, f"call-{self.handed}"))

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def messages(course: Course) -> int:
    """Two agents that hand the conversation off to each other; each handoff is one model request."""

    async def play(pair: int) -> int:
        model = HandingOff(course)
        ping, pong = Agent(name="ping", model=model), Agent(name="pong", model=model)
        ping.handoffs, pong.handoffs = [pong], [ping]
        await Runner.run(ping, BODY, session=_session(course, str(pair)), max_turns=course.hops + 2, run_config=QUIET)
        return model.handed

    with course.measured():
        ended = await asyncio.gather(*map(play, range(PAIRS)))
    return sum(ended)


async def tasks(course: Course) -> int:
    agents = {task: _agent(course, task) for task in [*course.tasks, *course.warm_up]}

    async def run(task: str) -> bool:
        result = await Runner.run(agents[task], prompt_of(task), session=_session(course, task), run_config=QUIET)
        return result.final_output == FINAL

    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def agents(course: Course) -> int:
    model = FakeModel(course)

    def make(number: int) -> Agent:
        return Agent(name=f"agent-{number}", model=model, tools=[function_tool(each) for each in tools_of(number)])

    made = [make(-1)]
    with course.measured():
        made += map(make, range(course.size))
        for agent in made[1:] if course.used else ():
            await Runner.run(agent, USED_PROMPT, run_config=QUIET)
    return len(made) - 1


async def restart(course: Course) -> int:
    async def run(task: str) -> bool:
        session = _session(course, task)
        course.tell("accepted", task)
        kept = [] if course.fresh else await session.get_items()
        if kept and kept[-1].get("type") == "message":
            return True
        # A conversation that was kept has the prompt already.
        given = [] if kept else prompt_of(task)
        result = await Runner.run(_agent(course, task), given, session=session, run_config=QUIET)
        return result.final_output == FINAL

    course.tell("opening")
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


def _agent(course: Course, name: str) -> Agent:
    @function_tool
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    return Agent(name=name, model=FakeModel(course), tools=[look_up])


def _session(course: Course, key: str) -> SQLiteSession | None:
    return SQLiteSession(key, course.folder / "openai.db") if course.durable else None


def _call(name: str, call_id: str, **arguments: str):
    return function_call(name, json.dumps(arguments), call_id=call_id)


def _response(item) -> ModelResponse:
    return ModelResponse(output=[item], usage=Usage(), response_id=None)


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
