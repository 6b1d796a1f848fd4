"""W5, coordination: what it costs to wake many sleepers, to ask and wait, and to sleep.

The floor of a broadcast starts as many plain asyncio tasks, each of which asks the same model once; that of a question
is the bare work of two commits for each of its two hops.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn, UserTurn
from ai_whisperer.models.base import ModelRequest, collect
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.sqlite import SqliteStore
from bench import floor
from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W5"
LISTENERS = 1_000
SLEEPERS = 10_000
QUESTIONS = 200
IDLE_SECONDS = 2.0


def probes(*, quick: bool) -> list[Probe]:
    sleepers = SLEEPERS // 10 if quick else SLEEPERS
    return [
        Probe("floor broadcast", in_fresh_process(floor_broadcast)),
        Probe("ours broadcast", in_fresh_process(ours_broadcast)),
        Probe("floor switch", in_fresh_process(floor_switch)),
        Probe("ours switch", in_fresh_process(ours_switch)),
        Probe("floor sleepers", in_fresh_process(floor_sleepers)),
        Probe("ours sleepers", in_fresh_process(ours_sleepers, agents=sleepers)),
    ]


def figures(samples: Samples) -> list[Figure]:
    cpu = {probe: values_of(samples, probe, "cpu") for probe in samples if "switch" not in probe}
    return [
        Figure(
            f"a broadcast wakes {LISTENERS}, all loops started",
            "s of CPU",
            cpu["ours broadcast"],
            floor=cpu["floor broadcast"],
            target=Target(1.0),
        ),
        Figure(
            "a question and its answer: commits",
            "commits",
            values_of(samples, "ours switch", "commits"),
            target=Target(6.0),
            typical=max,
        ),
        Figure(
            "a question and its answer",
            "ms",
            values_of(samples, "ours switch", "ms"),
            floor=values_of(samples, "floor switch", "ms"),
        ),
        Figure(
            f"{int(samples['ours sleepers'][0]['agents'])} sleepers for a second",
            "ms of CPU",
            cpu["ours sleepers"],
            floor=cpu["floor sleepers"],
        ),
    ]


async def floor_broadcast(folder: Path) -> Sample:
    del folder
    model = FunctionModel(lambda _: "awake")

    async def ask(number: int) -> Answer:
        request = ModelRequest(step_id=str(number), agent_id="", system="", turns=(UserTurn(text="wake"),))
        return await collect(model.stream(request))

    watch = Stopwatch()
    await asyncio.gather(*map(ask, range(LISTENERS)))
    return {"cpu": watch.read()[1]}


async def ours_broadcast(folder: Path) -> Sample:
    started = 0
    all_started = asyncio.Event()

    def answer(_: ModelRequest) -> str:
        nonlocal started
        started += 1
        if started == LISTENERS:
            all_started.set()
        return "awake"

    model = FunctionModel(answer)
    async with AsyncAgentSessionManager(folder, model_factory=lambda _: model) as manager:
        made = await asyncio.gather(*(manager.create_agent(f"agent-{each}", {}) for each in range(LISTENERS)))
        await asyncio.gather(*(manager.sleep_agent(each, wake_events=["go"]) for each in made))
        watch = Stopwatch()
        event = await manager.broadcast_event("go", {"number": 1})
        await all_started.wait()
        cpu = watch.read()[1]
        assert event.woken == LISTENERS
    return {"cpu": cpu}


async def floor_switch(folder: Path) -> Sample:
    journal = floor.GroupCommit(folder)
    watch = Stopwatch()
    for each in range(QUESTIONS):
        for hop in range(4):
            await journal.write(floor.INSERT_TASK, (f"{each}-{hop}", "thread", "What?"))
    return {"ms": watch.read()[0] / QUESTIONS * 1000}


async def ours_switch(folder: Path) -> Sample:
    store = SqliteStore.open(folder)
    model = FunctionModel(_ask_or_answer)
    async with AsyncAgentSessionManager(store=store, model_factory=lambda _: model) as manager:
        await manager.create_agent("asks", {})
        await manager.create_agent("answers", {})
        await manager.run_task("asks", "go")
        await manager.flushed()
        commits, watch = store.commits, Stopwatch()
        for _ in range(QUESTIONS):
            ended = await manager.wait_task(await manager.send_task("asks", "go"))
            assert ended.state is TaskState.COMPLETED
        await manager.flushed()
        wall = watch.read()[0]
        used = (store.commits - commits) / QUESTIONS
    await store.close()
    return {"commits": used, "ms": wall / QUESTIONS * 1000}


async def floor_sleepers(folder: Path) -> Sample:
    del folder
    watch = Stopwatch()
    await asyncio.sleep(IDLE_SECONDS)
    return {"cpu": watch.read()[1] / IDLE_SECONDS * 1000}


async def ours_sleepers(folder: Path, *, agents: int) -> Sample:
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        made = await asyncio.gather(*(manager.create_agent(f"agent-{each}", {}) for each in range(agents)))
        await asyncio.gather(*(manager.sleep_agent(each, duration_seconds=3600, wake_events=["go"]) for each in made))
        await manager.flushed()
        watch = Stopwatch()
        await asyncio.sleep(IDLE_SECONDS)
        cpu = watch.read()[1]
    return {"cpu": cpu / IDLE_SECONDS * 1000, "agents": agents}


def _ask_or_answer(request: ModelRequest) -> Answer | str:
    if request.agent_id == "answers":
        return "yes"
    if isinstance(request.turns[-1], ToolTurn):
        return "done"
    arguments = '{"to_agent":"answers","subject":"Question","body":"What?"}'
    return Answer(tool_calls=(ToolCall(call_id=request.step_id, name="send_mail_with_switch", arguments=arguments),))
