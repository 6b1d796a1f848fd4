"""W2, tasks at the same time: N agents, each one task of three model requests of 50 ms with two tool calls between."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager, TaskRecord, TaskState
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from bench import floor
from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W2"
LATENCY_SECONDS = 0.05
IDEAL_SECONDS = 3 * LATENCY_SECONDS
TOOL_CALLS = 2
WARM_UP_TASKS = 20
PROMPT = "Look up both facts and say what they are."

_WALL_LIMITS = {"memory": {10: 1.05, 100: 1.2, 1000: 3.0}, "durable": {10: 1.1, 100: 1.4, 1000: 4.0}}
_MAX_CPU_MS = 1.0


def probes(*, quick: bool) -> list[Probe]:
    del quick  # a round takes seconds as it is
    return [
        Probe(f"{side} {place} {agents}", in_fresh_process(function, agents=agents, durable=place == "durable"))
        for place, limits in _WALL_LIMITS.items()
        for agents in limits
        for side, function in (("floor", floor_tasks), ("ours", ours_tasks))
    ]


def figures(samples: Samples) -> list[Figure]:
    found = []
    for place, limits in _WALL_LIMITS.items():
        for agents, limit in limits.items():
            basis, ours = (values_of(samples, f"{side} {place} {agents}", "wall") for side in ("floor", "ours"))
            found.append(Figure(f"{place}, {agents} agents: wall", "÷ ideal", ours, floor=basis, target=Target(limit)))
    for place, limits in _WALL_LIMITS.items():
        most = max(limits)
        basis, ours = (values_of(samples, f"{side} {place} {most}", "cpu_ms") for side in ("floor", "ours"))
        target = Target(_MAX_CPU_MS)
        found.append(Figure(f"{place}, {most} agents: CPU a task", "ms", ours, floor=basis, target=target))
    failed = [sample["failed"] for name, taken in samples.items() if name.startswith("ours") for sample in taken]
    found.append(Figure("tasks that failed, all runs", "tasks", failed, target=Target(0.0), typical=max))
    return found


async def floor_tasks(folder: Path, *, agents: int, durable: bool) -> Sample:
    journal = floor.GroupCommit(folder) if durable else None

    async def ask(step_id: str) -> str:
        await asyncio.sleep(LATENCY_SECONDS)
        return f"answer of {step_id}"

    async def look_up(step_id: str) -> str:
        return f"fact of {step_id}"

    async def run(task_id: str) -> str:
        if journal is not None:
            await journal.write(floor.INSERT_TASK, (task_id, task_id, PROMPT))
        return await floor.run_task(task_id, [ask, look_up, ask, look_up, ask], journal)

    await asyncio.gather(*(run(f"warm-{each}") for each in range(WARM_UP_TASKS)))
    watch = Stopwatch()
    results = await asyncio.gather(*(run(f"task-{each}") for each in range(agents)))
    return _sample(watch, agents, failed=agents - len(list(filter(None, results))))


async def ours_tasks(folder: Path, *, agents: int, durable: bool, rounds: int = 1) -> Sample:
    """Each agent does one task in each round, all of them at the same time."""

    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return f"fact {fact}"

    model = FunctionModel(_answer, latency_seconds=LATENCY_SECONDS)
    place = folder if durable else None
    async with AsyncAgentSessionManager(place, tools=[look_up], model_factory=lambda _: model) as manager:
        made = await asyncio.gather(*(manager.create_agent(f"agent-{each}") for each in range(agents)))

        async def run(agent: int) -> TaskRecord:
            return await manager.wait_task(await manager.send_task(made[agent], PROMPT))

        await asyncio.gather(*map(run, range(min(WARM_UP_TASKS, agents))))
        watch = Stopwatch()
        failed = 0
        for _ in range(rounds):
            ended = await asyncio.gather(*map(run, range(agents)))
            failed += sum(task.state is not TaskState.COMPLETED for task in ended)
        sample = _sample(watch, agents * rounds, failed=failed)
        assert all([len(await manager.list_steps(task.id)) == 3 + TOOL_CALLS for task in ended])
    return sample


def _answer(request: ModelRequest) -> Answer | str:
    called = sum(isinstance(turn, ToolTurn) for turn in request.turns)
    if called == TOOL_CALLS:
        return "Both facts are known."
    call = ToolCall(call_id=request.step_id, name="look_up", arguments=f'{{"fact":"{called}"}}')
    return Answer(tool_calls=(call,))


def _sample(watch: Stopwatch, tasks: int, *, failed: int) -> Sample:
    wall, cpu = watch.read()
    return {"wall": wall / IDEAL_SECONDS, "cpu_ms": cpu / tasks * 1000, "failed": failed}
