"""A stage for scenarios: a session on virtual time with a model that says what the scenario wants."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn, Usage, UserTurn
from ai_whisperer.models.base import Model, ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.store.base import Store
from ai_whisperer.tools.function import AnyFunction

Say = Callable[[ModelRequest], Answer | str]
Scenario = Callable[[AsyncAgentSessionManager], Coroutine[Any, Any, None]]
Deed = Callable[[AsyncAgentSessionManager], Awaitable[object]]


def opened(
    store: Store | None,
    say: Say,
    *,
    tools: Iterable[AnyFunction] = (),
    latency_seconds: float = 1.0,
    seed: int = 0,
    models: Callable[[str], Model] | None = None,
    clock: VirtualClock | None = None,
    session_id: str = "default",
    trial_turn: TrialTurn | None = None,
    **more: Any,
) -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(
        store=store,
        session_id=session_id,
        trial_turn=trial_turn,
        tools=tools,
        model_factory=models or (lambda _: FunctionModel(say, latency_seconds=latency_seconds)),
        clock=clock or VirtualClock(),
        random=random.Random(seed),
        **{"templates": (), **more},
    )


def play(scenario: Scenario, say: Say = lambda _: "done", **settings: Any) -> None:
    """Run a scenario on a session in memory; every agent uses the same model."""

    async def main() -> None:
        async with opened(None, say, **settings) as manager:
            await scenario(manager)

    simulate(main(), seed=settings.get("seed", 0))


def play_over_crash(
    before: Scenario,
    after: Scenario,
    say: Say = lambda _: "done",
    *,
    crash_after_seconds: float,
    down_for_seconds: float = 0.0,
    slowest_read_seconds: float = 0.0,
    **settings: Any,
) -> None:
    """Run the first scenario until the process dies at that time, then the second one on what the disk has."""
    disk = SimulatedDisk(settings.get("seed", 0), slowest_read_seconds=slowest_read_seconds)

    async def first() -> None:
        manager = opened(disk.open(), say, **settings)
        await manager.open()
        scenario = asyncio.ensure_future(before(manager))
        await asyncio.wait([scenario], timeout=crash_after_seconds)
        disk.crash()
        if scenario.done():
            scenario.result()

    async def second() -> None:
        store = disk.open()
        clock = VirtualClock().later(crash_after_seconds + down_for_seconds)
        async with opened(store, say, clock=clock, **settings) as manager:
            await after(manager)
        await store.close()
        disk.close()

    simulate(first(), seed=settings.get("seed", 0))
    simulate(second(), seed=settings.get("seed", 0) + 1)


def call(name: str, /, **arguments: Any) -> Answer:
    """An answer that asks for one tool call."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]]) -> Answer:
    return Answer(
        tool_calls=tuple(
            ToolCall(call_id=f"c{index}", name=name, arguments=msgspec.json.encode(arguments).decode())
            for index, (name, arguments) in enumerate(wanted)
        ),
        usage=Usage(input_tokens=10, output_tokens=5),
    )


def prompt_of(request: ModelRequest) -> str:
    """What the task that runs was told, without the marks around what others wrote."""
    return next(without_marks(turn.text) for turn in reversed(request.turns) if isinstance(turn, UserTurn))


def round_of(request: ModelRequest) -> int:
    """How many answers the task that runs has had."""
    count = 0
    for turn in reversed(request.turns):
        if isinstance(turn, UserTurn):
            break
        count += isinstance(turn, AnswerTurn)
    return count


def results_of(request: ModelRequest) -> list[str]:
    """The tool results that the task that runs has had, without the marks around what others wrote."""
    found: list[str] = []
    for turn in reversed(request.turns):
        if isinstance(turn, UserTurn):
            break
        if isinstance(turn, ToolTurn):
            found.append(without_marks(turn.content))
    return found[::-1]


async def deferred(read: Callable[[], object]) -> object:
    """A call that reads, as one that can be awaited like the others."""
    return read()


async def names_of(manager: AsyncAgentSessionManager) -> list[str]:
    """The names of all notifications so far."""
    return [note.name for note in await manager.notifications(limit=100_000)]


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Let virtual time pass until the condition holds."""
    while True:
        held = condition()
        if held if isinstance(held, bool) else await held:
            await asyncio.sleep(0.01)  # what was decided is now on disk too
            return
        await asyncio.sleep(0.01)
