"""Google ADK in the race: `LlmAgent` with a `BaseLlm` of our own, and `DatabaseSessionService` where work is durable.

There the app is resumable, and an invocation that was left is resumed by its id, as the documentation says. The lighter
`SqliteSessionService` takes half the processor time, but of 100 tasks at once many failed ("database is locked"); here
some did too until SQLite was told to wait longer than its default of 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.genai import types

from bench.race.course import BODY, FINAL, USED_PROMPT, Doing, Script, main, prompt_of, tools_of

USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=10, total_token_count=20
)


class FakeModel(BaseLlm):
    model: str = "fake"
    course: Any = None

    async def generate_content_async(self, llm_request, stream=False):
        parts = [part for content in llm_request.contents for part in content.parts or []]
        called = sum(part.function_response is not None for part in parts)
        prompt = next(part.text for part in parts if part.text)
        fact = await self.course.next_fact(prompt, called)
        yield _response(FINAL) if fact is None else _call("look_up", fact, fact=fact)


class Transferring(BaseLlm):
    """Transfers to the other agent until so many messages have passed."""

    model: str = "fake"
    course: Any = None
    handed: int = 0

    async def generate_content_async(self, llm_request, stream=False):
        self.course.asked()
        if self.handed == self.course.hops:
            yield _response(BODY)
            return
        self.handed += 1
        other = "pong" if self.handed % 2 else "ping"
        yield _call("transfer_to_agent", f"call-{self.handed}", agent_name=other)


class GoogleADK(Script):
    async def open(self) -> None:
        self._service = (
            DatabaseSessionService(f"sqlite+aiosqlite:///{self.course.folder}/adk.db", connect_args={"timeout": 60})
            if self.course.durable
            else InMemorySessionService()
        )

    async def make_pair(self, pair: str) -> Doing:
        """An agent and its sub-agent that transfer to each other; each transfer is one model request."""
        model = Transferring(course=self.course)
        pong = LlmAgent(name="pong", model=model, description="The other one.")
        ping = LlmAgent(name="ping", model=model, description="The first one.", sub_agents=[pong])
        runner = self._runner(ping)
        await self._begin_session(pair)

        async def play() -> int:
            async for _ in runner.run_async(user_id="user", session_id=pair, new_message=_content(BODY)):
                pass
            return model.handed

        return play

    async def make_worker(self, task: str) -> Doing:
        runner = self._runner(self._agent())
        await self._begin_session(task)

        async def run() -> int:
            return await _ends(runner, task, new_message=_content(prompt_of(task)))

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[LlmAgent]:
        model = FakeModel(course=self.course)
        return [LlmAgent(name=f"agent_{each}", model=model, tools=tools_of(each)) for each in numbers]

    async def use(self, agent: LlmAgent) -> bool:
        await self._begin_session(agent.name)
        return await _ends(self._runner(agent), agent.name, new_message=_content(USED_PROMPT))

    async def resume(self, task: str) -> bool:
        """An invocation that was left is resumed by its id; one runner serves all sessions."""
        runner, session = self._shared_runner, None
        if not self.course.fresh:
            session = await self._service.get_session(app_name="race", user_id="user", session_id=task)
        if session is None:
            await self._begin_session(task)
        if session is None or not session.events:
            return await _ends(runner, task, new_message=_content(prompt_of(task)))
        if any(_text(each) == FINAL for each in session.events):
            return True
        return await _ends(runner, task, invocation_id=session.events[-1].invocation_id)

    async def _begin_session(self, session_id: str) -> None:
        await self._service.create_session(app_name="race", user_id="user", session_id=session_id)

    @cached_property
    def _shared_runner(self) -> Runner:
        return self._runner(self._agent())

    def _agent(self) -> LlmAgent:
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        return LlmAgent(name="worker", model=FakeModel(course=self.course), tools=[look_up])

    def _runner(self, agent: LlmAgent) -> Runner:
        resumable = ResumabilityConfig(is_resumable=True) if self.course.durable else None
        app = App(name="race", root_agent=agent, resumability_config=resumable)
        return Runner(app=app, session_service=self._service)


async def _ends(runner: Runner, task: str, **given) -> bool:
    last = ""
    async for event in runner.run_async(user_id="user", session_id=task, **given):
        last = _text(event) or last
    return last == FINAL


def _text(event) -> str:
    return "".join(part.text or "" for part in event.content.parts or []) if event.content else ""


def _content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def _response(text: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), usage_metadata=USAGE)


def _call(name: str, call_id: str, **arguments: str) -> LlmResponse:
    call = types.FunctionCall(id=call_id, name=name, args=arguments)
    return LlmResponse(
        content=types.Content(role="model", parts=[types.Part(function_call=call)]), usage_metadata=USAGE
    )


if __name__ == "__main__":
    main(GoogleADK)
