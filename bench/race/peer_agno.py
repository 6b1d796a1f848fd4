"""Agno in the race: `Agent.arun`, and `AsyncSqliteDb` with `checkpoint="tool-batch"` where work is durable."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run.base import RunStatus
from agno.team import Team

from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of


@dataclass
class FakeModel(Model):
    id: str = "fake"
    course: Any = None

    async def ainvoke(self, messages, *_, **__) -> ModelResponse:
        called = sum(each.role == "tool" for each in messages)
        prompt = next(each.content for each in messages if each.role == "user")
        fact = await self.course.next_fact(prompt, called)
        return _response(FINAL) if fact is None else _response(None, _call("look_up", fact, fact=fact))

    def _unused(self, *_, **__):
        raise NotImplementedError

    invoke = invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = _unused


@dataclass
class Leading(FakeModel):
    """Delegates to the member so many times; the member's own requests are answered at once."""

    questions: int = 0

    async def ainvoke(self, messages, *_, **__) -> ModelResponse:
        self.course.asked()
        called = sum(each.role == "tool" for each in messages)
        if called == self.questions:
            return _response(BODY)
        return _response(None, _call("delegate_task_to_member", f"call-{called}", member_id="answers", task=BODY))


async def messages(course: Course) -> int:
    """A team whose leader delegates to its member, again and again; a question and its answer are two messages."""
    db = _db(course)

    async def play(pair: int) -> int:
        member = Agent(id="answers", name="answers", model=Leading(course=course), telemetry=False)
        leader = Leading(course=course, questions=course.hops // 2)
        kept = {"db": db, "checkpoint": "tool-batch"} if db else {}
        team = Team([member], name=f"pair-{pair}", model=leader, telemetry=False, **kept)
        result = await team.arun(BODY, session_id=str(pair))
        return sum(each.role == "tool" for each in result.messages or [])

    with course.measured():
        ended = await asyncio.gather(*map(play, range(PAIRS)))
    return 2 * sum(ended)


async def tasks(course: Course) -> int:
    db = _db(course)
    agents = {task: _agent(course, task, db) for task in [*course.tasks, *course.warm_up]}

    async def run(task: str) -> bool:
        return (await agents[task].arun(prompt_of(task), session_id=task)).content == FINAL

    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def agents(course: Course) -> int:
    model = FakeModel(course=course)
    made = [Agent(model=model, tools=tools_of(-1), telemetry=False)]
    with course.measured():
        made += [Agent(model=model, tools=tools_of(number), telemetry=False) for number in range(course.size)]
        for agent in made[1:] if course.used else ():
            await agent.arun(USED_PROMPT)
    return len(made) - 1


async def restart(course: Course) -> int:
    """A run that has a checkpoint is continued with `acontinue_run`; one that has none is begun again."""
    course.tell("opening")
    db = _db(course)

    async def run(task: str) -> bool:
        agent = _agent(course, task, db)
        course.tell("accepted", task)
        session = None if course.fresh else await agent.aget_session(session_id=task)
        kept = {each.run_id: each for each in (session.runs if session else None) or []}
        if task not in kept:
            result = await agent.arun(prompt_of(task), session_id=task, run_id=task)
        elif kept[task].status == RunStatus.completed:
            return True
        else:
            result = await agent.acontinue_run(run_id=task, session_id=task)
        return result.content == FINAL

    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


def _agent(course: Course, name: str, db: AsyncSqliteDb | None) -> Agent:
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    kept = {"db": db, "checkpoint": "tool-batch"} if db else {}
    return Agent(id=name, model=FakeModel(course=course), tools=[look_up], telemetry=False, **kept)


def _db(course: Course) -> AsyncSqliteDb | None:
    return AsyncSqliteDb(db_file=str(course.folder / "agno.db")) if course.durable else None


def _call(name: str, call_id: str, **arguments: str) -> dict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _response(content: str | None, *calls: dict) -> ModelResponse:
    return ModelResponse(role="assistant", content=content, tool_calls=list(calls))


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
