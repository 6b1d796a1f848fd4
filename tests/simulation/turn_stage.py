"""A stage for agents that touch the same things, and a witness of who touched what and when."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, TaskState, ToolContext, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import Tool
from tests.simulation.stage import calls, play, prompt_of, results_of, round_of

Call = tuple[str, dict[str, object]]


class Things:
    """Tools that touch things, and a witness of who touched what and when."""

    def __init__(self) -> None:
        self.began: list[tuple[str, float]] = []
        self.ended: list[tuple[str, float]] = []
        self.writers: Counter[str] = Counter()
        self.readers: Counter[str] = Counter()
        self.most_readers = 0

    @property
    def tools(self) -> list[Tool]:
        @tool(touches="write {name}")
        async def write(name: str, context: ToolContext, seconds: float = 10) -> str:
            """Write a thing."""
            return await self._touch(context, [name], [], seconds)

        @tool(touches="write {name}", idempotent=True)
        async def rewrite(name: str, context: ToolContext, seconds: float = 10) -> str:
            """Write a thing; to do it twice does no harm."""
            return await self._touch(context, [name], [], seconds)

        @tool(touches="read {name}")
        async def read(name: str, context: ToolContext, seconds: float = 10) -> str:
            """Read a thing."""
            return await self._touch(context, [], [name], seconds)

        @tool(touches=["read {source}", "write {target}"])
        async def copy(source: str, target: str, context: ToolContext, seconds: float = 10) -> str:
            """Read a thing and write another."""
            return await self._touch(context, [target], [source], seconds)

        @tool
        async def nap(seconds: float) -> str:
            """Let time pass."""
            await asyncio.sleep(seconds)
            return "rested"

        return [write, rewrite, read, copy, nap]

    async def _touch(self, context: ToolContext, written: list[str], read: list[str], seconds: float) -> str:
        for name in written:
            assert not self.writers[name] + self.readers[name], f"two at {name} at once"
            self.writers[name] += 1
        for name in read:
            assert not self.writers[name], f"one reads {name} while another writes it"
            self.readers[name] += 1
            self.most_readers = max(self.most_readers, self.readers[name])
        self.began.append((context.agent_id, now()))
        try:
            await asyncio.sleep(seconds)
        finally:
            self.writers.subtract(written)
            self.readers.subtract(read)
        self.ended.append((context.agent_id, now()))
        return "touched"


def now() -> float:
    return asyncio.get_running_loop().time()


def by_prompt(request: ModelRequest) -> Answer | str:
    """The prompt says what to do: `write x`, or several such with `and` between them, side by side; then the end."""
    if round_of(request):
        return "; ".join(results_of(request))
    wanted: list[Call] = []
    for part in prompt_of(request).split(" and "):
        name, *words = part.split()
        match name:
            case "copy":
                wanted.append((name, {"source": words[0], "target": words[1]}))
            case "nap":
                wanted.append((name, {"seconds": float(words[0])}))
            case "lock":
                wanted.append(("acquire_lock", {"name": words[0], "ttl_seconds": 5000}))
            case _:
                wanted.append((name, {"name": words[0], **({"seconds": float(words[1])} if words[1:] else {})}))
    return calls(*wanted)


async def give(manager: AsyncAgentSessionManager, **prompts: str) -> None:
    """One task for each of these new agents, one after the other. It has the name of the agent."""
    for name, prompt in prompts.items():
        await manager.create_agent(name, {"limits": {"max_concurrent_tasks": 5}})
        await manager.send_task(name, prompt, task_id=name)
        await asyncio.sleep(0.01)


async def done(manager: AsyncAgentSessionManager, *names: str) -> None:
    for name in names:
        ended = await manager.wait_task(name)
        assert ended.state is TaskState.COMPLETED, ended.error
        assert ended.result is not None
        assert "touched" in ended.result.final, ended.result.final


def paused_for(manager: AsyncAgentSessionManager, name: str) -> tuple[str, ...]:
    return manager.get_agent_status(name).paused_for


async def told(manager: AsyncAgentSessionManager, name: str) -> list[dict[str, Any]]:
    return [note.params for note in await manager.notifications(limit=10_000) if note.name == name]


def assert_nothing_is_left(manager: AsyncAgentSessionManager) -> None:
    session = manager._session
    assert manager.list_resources() == []
    assert not session.waits.by_step
    assert not session.turns.lines._of_task


def play_things(scenario: Callable[[AsyncAgentSessionManager, Things], Any], **settings: Any) -> None:
    things = Things()

    async def run(manager: AsyncAgentSessionManager) -> None:
        await scenario(manager, things)
        await manager.at_rest()
        assert_nothing_is_left(manager)

    play(run, settings.pop("say", by_prompt), tools=things.tools, **settings)
