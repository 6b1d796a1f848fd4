"""W4, `kill -9` at half of the steps and a restart: what is lost, what is done again, how soon it goes on.

Every model request and tool call tells a witness in another process, through a pipe, when it begins and when it has
ended. The witness kills the process at half of the ends. What had been committed then is read from a copy of the data
folder, before the restart.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ai_whisperer import AsyncAgentSessionManager, TaskState, ToolContext
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite import SqliteStore
from bench.probe import Probe, ProbeError, Sample, Samples, sample_from, values_of
from bench.report import Figure, Target
from bench.w4_floor import AGENTS, PROMPT, TASKS, committed_by_floor, floor_works
from bench.witness import Teller, witness

TITLE = "W4"
STEPS = 5 * AGENTS
_MAX_SECONDS = 0.5


def probes(*, quick: bool) -> list[Probe]:
    del quick  # a round takes seconds as it is
    return [
        Probe("floor", lambda folder: _restart(folder, floor_works, committed_by_floor)),
        Probe("ours", lambda folder: _restart(folder, ours_works, _committed_by_ours)),
    ]


def figures(samples: Samples) -> list[Figure]:
    def both(value: str) -> tuple[list[float], list[float]]:
        return values_of(samples, "ours", value), values_of(samples, "floor", value)

    def count(name: str, value: str, *, target: Target | None = None) -> Figure:
        ours, basis = both(value)
        return Figure(name, value.split("_")[0], ours, floor=basis, target=target, typical=max)

    def seconds(name: str, value: str, *, target: Target | None = None) -> Figure:
        ours, basis = both(value)
        return Figure(name, "s", ours, floor=basis, target=target)

    none = Target(0.0)
    return [
        count("tasks lost", "tasks_lost", target=none),
        count("committed steps that ran again", "steps_committed_repeated", target=none),
        count("ended but not committed, ran again", "steps_finished_repeated"),
        count("under way at the kill, ran again", "steps_open_repeated"),
        count("tool calls left as 'outcome unknown'", "steps_unknown"),
        seconds("first step after opening", "opening_to_step", target=Target(_MAX_SECONDS)),
        seconds("first step after start of the process", "process_to_step"),
    ]


def _restart(folder: Path, works: Callable[..., Any], committed: Callable[[Path], set[str]]) -> Sample:
    data = folder / "data"
    data.mkdir()
    before = witness(works, data, kill_at=STEPS // 2)
    if before.accepted != set(TASKS):
        raise ProbeError(f"Only {len(before.accepted)} of {AGENTS} tasks were accepted before the kill.")
    copy = folder / "copy"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*-shm"))
    kept = committed(copy)
    after = witness(works, data, kill_at=None)
    result = sample_from(after.output)
    begun = len({*before.started, *after.started})
    if not STEPS - result["unknown"] <= begun <= STEPS:
        raise ProbeError(f"{begun} steps were begun instead of {STEPS}.")
    ended = set(before.finished)
    repeated = [step for step in after.started if step in set(before.started)]
    return {
        "tasks_lost": AGENTS - result["completed"],
        "steps_committed_repeated": sum(step in kept for step in repeated),
        "steps_finished_repeated": sum(step in ended and step not in kept for step in repeated),
        "steps_open_repeated": sum(step not in ended for step in repeated),
        "steps_unknown": result["unknown"],
        "steps_before_kill": len(before.finished),
        "opening_to_step": after.first_step_at - after.opening_at,
        "process_to_step": after.first_step_at - after.began_at,
    }


async def ours_works(folder: Path, *, pipe: int, fresh: bool) -> Sample:
    teller = Teller(pipe)

    async def look_up(fact: str, context: ToolContext) -> str:
        """Look a fact up."""
        del fact
        return await teller.look_up(context.step_id)

    model = _WitnessedModel(teller)
    manager = AsyncAgentSessionManager(folder, tools=[look_up], model_factory=lambda _: model)
    teller.tell("opening")
    async with manager:
        if fresh:
            made = [await manager.create_agent(f"agent-{number}") for number in range(AGENTS)]

            async def send(number: int) -> None:
                await manager.send_task(made[number], PROMPT, task_id=TASKS[number])
                teller.tell("accepted", TASKS[number])

            await asyncio.gather(*map(send, range(AGENTS)))
        ended = await asyncio.gather(*map(manager.wait_task, TASKS))
        steps = [step for task in ended for step in await manager.list_steps(task.id)]
        return {
            "completed": sum(task.state is TaskState.COMPLETED for task in ended),
            "unknown": sum(step.state is StepState.UNKNOWN for step in steps),
        }


class _WitnessedModel:
    """Asks for two tool calls, one after the other, then answers."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._answers = FunctionModel(_answer)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        await self._teller.ask(request.step_id)
        async for event in self._answers.stream(request):
            yield event

    async def close(self) -> None:
        """There is nothing to close."""


def _answer(request: ModelRequest) -> Answer | str:
    called = sum(isinstance(turn, ToolTurn) for turn in request.turns)
    if called == 2:
        return "Both facts are known."
    return Answer(tool_calls=(ToolCall(call_id=request.step_id, name="look_up", arguments=f'{{"fact":"{called}"}}'),))


def _committed_by_ours(copy: Path) -> set[str]:
    async def read() -> set[str]:
        store = SqliteStore.open(copy)
        try:
            steps = [step for task_id in TASKS for step in await store.steps("default", task_id)]
            return {step.id for step in steps if step.state is StepState.DONE}
        finally:
            await store.close()

    return asyncio.run(read())
