"""OpenAI Agents SDK in the race: `Runner.run`, and `SQLiteSession` where work is durable.

A session keeps the conversation. There is no call that resumes a run whose process died, so a run is begun again on the
conversation that was kept. Of 100 tasks at once on an `AsyncSQLiteSession` each, 24 failed ("database is locked"), and
it took more processor time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property

from agents import Agent, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from agents.models.interface import Model
from agents.testing import assistant_message, function_call

from bench.race.course import BODY, FINAL, USED_PROMPT, Course, Doing, Script, main, prompt_of, tools_of

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


class OpenAIAgents(Script):
    async def open(self) -> None:
        self._model = FakeModel(self.course)

    async def make_pair(self, pair: str) -> Doing:
        """Two agents that hand the conversation off to each other; each handoff is one model request."""
        model, session = HandingOff(self.course), self._session(pair)
        ping, pong = Agent(name="ping", model=model), Agent(name="pong", model=model)
        ping.handoffs, pong.handoffs = [pong], [ping]

        async def play() -> int:
            turns = self.course.hops + 2
            await Runner.run(ping, BODY, session=session, max_turns=turns, run_config=QUIET)
            return model.handed

        return play

    async def make_worker(self, task: str) -> Doing:
        agent, session = self._agent(), self._session(task)

        async def run() -> int:
            return await self._is_done(agent, prompt_of(task), session)

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[Agent]:
        return [
            Agent(name=f"agent-{each}", model=self._model, tools=[function_tool(own) for own in tools_of(each)])
            for each in numbers
        ]

    async def use(self, agent: Agent) -> bool:
        return await self._is_done(agent, USED_PROMPT)

    async def resume(self, task: str) -> bool:
        session = self._session(task)
        kept = [] if self.course.fresh else await session.get_items()
        if kept and kept[-1].get("type") == "message":
            return True
        # A conversation that was kept has the prompt already.
        return await self._is_done(self._shared_agent, [] if kept else prompt_of(task), session)

    async def _is_done(self, agent: Agent, given, session: SQLiteSession | None = None) -> bool:
        return (await Runner.run(agent, given, session=session, run_config=QUIET)).final_output == FINAL

    @cached_property
    def _shared_agent(self) -> Agent:
        """One agent serves all conversations."""
        return self._agent()

    def _agent(self) -> Agent:
        @function_tool
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        return Agent(name="worker", model=self._model, tools=[look_up])

    def _session(self, key: str) -> SQLiteSession | None:
        return SQLiteSession(key, self.course.folder / "openai.db") if self.course.durable else None


def _call(name: str, call_id: str, **arguments: str):
    return function_call(name, json.dumps(arguments), call_id=call_id)


def _response(item) -> ModelResponse:
    return ModelResponse(output=[item], usage=Usage(), response_id=None)


if __name__ == "__main__":
    main(OpenAIAgents)
