"""Agno in the race: `Agent.arun`, and `AsyncSqliteDb` with `checkpoint="tool-batch"` where work is durable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run.base import RunStatus
from agno.team import Team

from bench.race.course import BODY, FINAL, USED_PROMPT, Doing, Script, main, prompt_of, tools_of


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


class Agno(Script):
    async def open(self) -> None:
        db = AsyncSqliteDb(db_file=str(self.course.folder / "agno.db")) if self.course.durable else None
        self._kept = {"db": db, "checkpoint": "tool-batch"} if db else {}

    async def make_pair(self, pair: str) -> Doing:
        """A team whose leader delegates to its member; a question and its answer are two messages."""
        member = Agent(id="answers", name="answers", model=Leading(course=self.course), telemetry=False)
        leader = Leading(course=self.course, questions=self.course.hops // 2)
        team = Team([member], name=f"pair-{pair}", model=leader, telemetry=False, **self._kept)

        async def play() -> int:
            result = await team.arun(BODY, session_id=pair)
            return 2 * sum(each.role == "tool" for each in result.messages or [])

        return play

    async def make_worker(self, task: str) -> Doing:
        agent = self._agent(task)

        async def run() -> int:
            return (await agent.arun(prompt_of(task), session_id=task)).content == FINAL

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[Agent]:
        model = FakeModel(course=self.course)
        return [Agent(model=model, tools=tools_of(number), telemetry=False) for number in numbers]

    async def use(self, agent: Agent) -> bool:
        return (await agent.arun(USED_PROMPT)).content == FINAL

    async def resume(self, task: str) -> bool:
        """A run that has a checkpoint is continued with `acontinue_run`; one agent serves all sessions."""
        agent = self._shared_agent
        session = None if self.course.fresh else await agent.aget_session(session_id=task)
        kept = {each.run_id: each for each in (session.runs if session else None) or []}
        if task not in kept:
            result = await agent.arun(prompt_of(task), session_id=task, run_id=task)
        elif kept[task].status == RunStatus.completed:
            return True
        else:
            result = await agent.acontinue_run(run_id=task, session_id=task)
        return result.content == FINAL

    @cached_property
    def _shared_agent(self) -> Agent:
        return self._agent("worker")

    def _agent(self, name: str) -> Agent:
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        return Agent(id=name, model=FakeModel(course=self.course), tools=[look_up], telemetry=False, **self._kept)


def _call(name: str, call_id: str, **arguments: str) -> dict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _response(content: str | None, *calls: dict) -> ModelResponse:
    return ModelResponse(role="assistant", content=content, tool_calls=list(calls))


if __name__ == "__main__":
    main(Agno)
