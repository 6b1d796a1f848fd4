"""AI Whisperer in the race."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from ai_whisperer import AgentSession, AsyncAgentSessionManager, TaskRecord, TaskState, tool
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn, UserTurn
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from bench.race.course import BODY, FINAL, USED_PROMPT, Course, Doing, Script, batched, main, prompt_of, tools_of


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


class AIWhisperer(Script):
    manager: AsyncAgentSessionManager

    async def open(self) -> None:
        """In memory there is no folder. Only the agents of W3 are on disk though nobody asks for it."""
        is_kept = self.course.durable or self.course.workload.startswith("agents")
        model = FunctionModel(self._play) if self.course.passes_messages else _FakeModel(self.course)

        # The others repeat a tool call that may have been made before the kill; so this one says that it may be.
        @tool(idempotent=True)
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        self.manager = AsyncAgentSessionManager(
            str(self.course.folder) if is_kept else None,
            tools=[look_up] if self.course.looks_up else [],
            model_factory=lambda _: model,
        )
        await self.manager.__aenter__()

    async def close(self) -> None:
        await self.manager.__aexit__(None, None, None)

    async def make_pair(self, pair: str) -> Doing:
        """One asks the other and waits, again and again; a question and its answer are two messages."""
        if self.course.bare:
            return await self._make_bare_pair(pair)
        asks = await self.manager.create_agent(f"asks-{pair}")
        await self.manager.create_agent(f"answers-{pair}")

        async def play() -> int:
            ended = await self._ended(asks, "Begin.")
            return self.course.hops if ended.state is TaskState.COMPLETED else 0

        return play

    async def _make_bare_pair(self, pair: str) -> Doing:
        """Python sends to the mailbox of an agent that is not started, and reads what has come, by turns."""
        agents = [await self.manager.create_agent(f"{side}-{pair}", auto_start=False) for side in ("a", "b")]

        async def play() -> int:
            for hop in range(self.course.hops):
                to = agents[hop % 2]
                sent = await self.manager.send_mail(to, "Next", BODY)
                (read,) = await self.manager.mailbox(to, limit=1)
                assert (read.id, read.body) == (sent.id, BODY)
            return self.course.hops

        return play

    def _play(self, request: ModelRequest) -> Answer | str:
        self.course.asked()
        side, _, pair = request.agent_id.partition("-")
        asked = sum(isinstance(turn, ToolTurn) for turn in request.turns)
        if side == "answers" or asked == self.course.hops // 2:
            return BODY
        return _call(request, "send_mail_with_switch", to_agent=f"answers-{pair}", subject="Next", body=BODY)

    async def make_worker(self, task: str) -> Doing:
        agent = await self.manager.create_agent(task)

        async def run() -> int:
            return (await self._ended(agent, prompt_of(task))).state is TaskState.COMPLETED

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[AgentSession]:
        """Created, checked, started and on disk, some at a time, which share a commit."""
        made: list[AgentSession] = []
        for some in batched(numbers):
            making = (self.manager.create_agent(f"agent-{number}", tools=tools_of(number)) for number in some)
            made += await asyncio.gather(*making)
        return made

    async def use(self, agent: AgentSession) -> bool:
        return await self.manager.run_task(agent, USED_PROMPT) == FINAL

    async def resume(self, task: str) -> bool:
        """Nothing is called to resume: opening the folder does it."""
        if self.course.fresh:
            await self.manager.create_agent(task)
            await self.manager.send_task(task, prompt_of(task), task_id=task)
        return (await self.manager.wait_task(task)).state is TaskState.COMPLETED

    async def _ended(self, agent: AgentSession, prompt: str) -> TaskRecord:
        return await self.manager.wait_task(await self.manager.send_task(agent, prompt))


def _call(request: ModelRequest, name: str, **arguments: str) -> Answer:
    return Answer(tool_calls=(ToolCall(call_id=request.step_id, name=name, arguments=json.dumps(arguments)),))


if __name__ == "__main__":
    main(AIWhisperer)
