"""Fills a data folder with sessions that are as large as the page has to bear, for its figures.

`many` has ten thousand agents; `long` a log of more than a hundred thousand notifications, and in it an agent, a room
and an inbox with thousands of tasks, messages and mails; `web500` and `web2000` have so many agents that wrote to each
other.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, ToolCall, Usage
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from tests.simulation.stage import prompt_of, round_of

AGENTS = 10_000
WORKERS = 200
TASKS = 8_000
THOUSANDS = 3_000
AT_ONCE = 200

Filling = Callable[[AsyncAgentSessionManager], Awaitable[None]]


async def many(manager: AsyncAgentSessionManager) -> None:
    """Ten thousand agents, every third of them not started, some with a task behind them."""

    async def make(number: int) -> None:
        config = {"name": f"Worker {number}", "description": f"Looks after berth {number % 977}"}
        await manager.create_agent(f"worker-{number}", config, auto_start=number % 3 != 0)
        if number % 9 == 1:
            await manager.wait_task(await manager.send_task(f"worker-{number}", f"Count boat {number}"))

    await _all(map(make, range(AGENTS)))


async def long(manager: AsyncAgentSessionManager) -> None:
    """Agents that did a lot."""
    await _cast(manager, WORKERS)
    await manager.create_agent("diarist", {"name": "Diarist"})
    await manager.create_agent("absent", {"name": "Absent"}, auto_start=False)
    room = await manager.create_room(["diarist", "absent"], title="The harbour", room_id="harbour")

    async def work(number: int) -> None:
        agent, thread = f"agent-{number % WORKERS}", f"thread-{number}"
        await manager.wait_task(await manager.send_task(agent, f"look at boat {number}", thread_id=thread))

    async def write(number: int) -> None:
        await manager.send_mail("absent", f"Letter {number}", f"The tide is *out* at quay {number}.")
        await manager.wait_task(
            await manager.send_task(f"agent-{number % WORKERS}", "mail user", thread_id=f"m{number}")
        )
        await manager.wait_task(await manager.send_task("diarist", f"look at day {number}", thread_id=f"day-{number}"))

    await _all(map(work, range(TASKS)))
    await _all(map(write, range(THOUSANDS)))
    for number in range(THOUSANDS):
        whom = "absent" if number % 30 else "diarist"  # each answer is given with the whole talk before it in mind
        message = await manager.post_message(room, f"@{whom} What of **boat {number}**?\n\n- one\n- `two`")
        if whom == "diarist":
            await manager.wait_task(message.asked[whom])


def web(agents: int) -> Filling:
    """Agents of which each writes to two others."""

    async def fill(manager: AsyncAgentSessionManager) -> None:
        await _cast(manager, agents)

        async def write(number: int) -> None:
            for other in (number * 7 + 1, number // 3):
                task = await manager.send_task(f"agent-{number}", f"mail agent-{other % agents}")
                await manager.wait_task(task)

        await _all(map(write, range(agents)))

    return fill


SESSIONS: dict[str, Filling] = {"many": many, "long": long, "web500": web(500), "web2000": web(2_000)}


async def _cast(manager: AsyncAgentSessionManager, agents: int) -> None:
    await _all(manager.create_agent(f"agent-{number}", {"name": f"Agent {number}"}) for number in range(agents))


async def _all(deeds: Iterable[Awaitable[object]]) -> None:
    """Do all of it, some at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(deed: Awaitable[object]) -> None:
        async with room:
            await deed

    await asyncio.gather(*map(one, deeds))


def answer(request: ModelRequest) -> Answer | str:
    """Mails whom it is told to, and looks at what it is told to."""
    prompt = prompt_of(request)
    if round_of(request) == 0 and prompt.startswith("mail "):
        whom = prompt.removeprefix("mail ")
        return _call(
            request, "send_mail", f'{{"to_agent":"{whom}","subject":"News of the quay","body":"All is **well**."}}'
        )
    if round_of(request) == 0 and prompt.startswith("look "):
        return _call(request, "report_progress", '{"percent":50,"note":"On the quay"}')
    return Answer(text="Seen: *all is well*.", usage=Usage(input_tokens=30, output_tokens=7, cost_usd=0.0001))


def _call(request: ModelRequest, tool: str, arguments: str) -> Answer:
    call = ToolCall(call_id=request.step_id, name=tool, arguments=arguments)
    return Answer(tool_calls=(call,), usage=Usage(input_tokens=20, output_tokens=5, cost_usd=0.0001))


async def main(data: str) -> None:
    model = FunctionModel(answer)
    for name, fill in SESSIONS.items():
        async with AsyncAgentSessionManager(data, session_id=name, model_factory=lambda _: model) as manager:
            await fill(manager)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
