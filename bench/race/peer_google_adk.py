"""Google ADK in the race: `LlmAgent` with a `BaseLlm` of our own, and `DatabaseSessionService` where work is durable.

There the app is resumable, and an invocation that was left is resumed by its id, as the documentation says. The lighter
`SqliteSessionService` takes half the processor time, but of 100 tasks at once many failed ("database is locked").
"""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.genai import types

from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of

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


async def messages(course: Course) -> int:
    """An agent and its sub-agent that transfer to each other; each transfer is one model request."""

    service = _service(course)

    async def play(pair: int) -> int:
        model = Transferring(course=course)
        pong = LlmAgent(name="pong", model=model, description="The other one.")
        ping = LlmAgent(name="ping", model=model, description="The first one.", sub_agents=[pong])
        runner = await _runner(course, ping, str(pair), service)
        async for _ in runner.run_async(user_id="user", session_id=str(pair), new_message=_content(BODY)):
            pass
        return model.handed

    with course.measured():
        ended = await asyncio.gather(*map(play, range(PAIRS)), return_exceptions=True)
    return sum(each for each in ended if isinstance(each, int))


async def tasks(course: Course) -> int:
    service = _service(course)

    async def run(task: str) -> bool:
        runner = await _runner(course, _agent(course), task, service)
        return await _ends(runner, task, new_message=_content(prompt_of(task)))

    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks), return_exceptions=True)
    return sum(each is True for each in ended)


async def agents(course: Course) -> int:
    model = FakeModel(course=course)
    service = _service(course)
    made = [LlmAgent(name="first", model=model, tools=tools_of(-1))]
    with course.measured():
        made += [LlmAgent(name=f"agent_{each}", model=model, tools=tools_of(each)) for each in range(course.size)]
        for agent in made[1:] if course.used else ():
            await _ends(
                await _runner(course, agent, agent.name, service), agent.name, new_message=_content(USED_PROMPT)
            )
    return len(made) - 1


async def restart(course: Course) -> int:
    service = _service(course)

    async def run(task: str) -> bool:
        course.tell("accepted", task)
        runner = await _runner(course, _agent(course), task, service)
        session = None
        if not course.fresh:
            session = await runner.session_service.get_session(app_name="race", user_id="user", session_id=task)
        events = session.events if session else []
        if not events:
            return await _ends(runner, task, new_message=_content(prompt_of(task)))
        if _text(events[-1]) == FINAL or any(_text(each) == FINAL for each in events):
            return True
        return await _ends(runner, task, invocation_id=events[-1].invocation_id)

    course.tell("opening")
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks), return_exceptions=True)
    return sum(each is True for each in ended)


async def _ends(runner: Runner, task: str, **given) -> bool:
    last = ""
    async for event in runner.run_async(user_id="user", session_id=task, **given):
        last = _text(event) or last
    return last == FINAL


def _agent(course: Course) -> LlmAgent:
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    return LlmAgent(name="worker", model=FakeModel(course=course), tools=[look_up])


def _service(course: Course):
    return (
        DatabaseSessionService(f"sqlite+aiosqlite:///{course.folder}/adk.db")
        if course.durable
        else InMemorySessionService()
    )


async def _runner(course: Course, agent: LlmAgent, session_id: str, service) -> Runner:
    resumable = ResumabilityConfig(is_resumable=True) if course.durable else None
    app = App(name="race", root_agent=agent, resumability_config=resumable)
    runner = Runner(app=app, session_service=service)
    if course.fresh or not await service.get_session(app_name="race", user_id="user", session_id=session_id):
        await service.create_session(app_name="race", user_id="user", session_id=session_id)
    return runner


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
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
