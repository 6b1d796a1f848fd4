"""W3, many agents: the memory and the time that created and started agents cost while they do nothing.

Memory is the growth of the resident set of a fresh process, collected before both readings; what the five tool
functions of an agent take is part of it. `tracemalloc` counts only what Python still holds, in a run of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.models.scripted import FunctionModel
from bench import floor
from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W3"
MANY = 10_000
USED = 2_000
_AT_ONCE = 50

_TOOL_NAMES = ("read_page", "write_page", "find_page", "list_pages", "drop_page")
_BYTES_IN_PAGE = os.sysconf("SC_PAGE_SIZE")

ToolFunction = Callable[..., Awaitable[str]]


def probes(*, quick: bool) -> list[Probe]:
    many = MANY // 5 if quick else MANY
    return [
        Probe("floor own", in_fresh_process(floor_agents, agents=many, tools="own", memory="resident")),
        Probe("ours own", in_fresh_process(ours_agents, agents=many, tools="own", memory="resident")),
        Probe("floor shared", in_fresh_process(floor_agents, agents=many, tools="shared", memory="resident")),
        Probe("ours shared", in_fresh_process(ours_agents, agents=many, tools="shared", memory="resident")),
        Probe("floor traced", in_fresh_process(floor_agents, agents=many, tools="own", memory="traced")),
        Probe("ours traced", in_fresh_process(ours_agents, agents=many, tools="own", memory="traced")),
        Probe("ours used", in_fresh_process(ours_used_agents, agents=min(many, USED))),
    ]


def figures(samples: Samples) -> list[Figure]:
    agents = int(samples["ours own"][0]["agents"])
    memory, seconds, tasks = (
        {probe: values_of(samples, probe, value) for probe in samples} for value in ("kb", "seconds", "tasks")
    )
    in_time = Target(1.5) if agents == MANY else None
    return [
        Figure("own tools: memory", "KB/agent", memory["ours own"], floor=memory["floor own"], target=Target(10.0)),
        Figure(f"own tools: {agents} created", "s", seconds["ours own"], floor=seconds["floor own"], target=in_time),
        Figure("own tools: new asyncio tasks", "tasks", tasks["ours own"], target=Target(0.0), typical=max),
        Figure(
            "shared tools: memory", "KB/agent", memory["ours shared"], floor=memory["floor shared"], target=Target(6.0)
        ),
        Figure(f"shared tools: {agents} created", "s", seconds["ours shared"], floor=seconds["floor shared"]),
        Figure(
            "own tools: held by Python (tracemalloc)", "KB/agent", memory["ours traced"], floor=memory["floor traced"]
        ),
        Figure("own tools: memory after one task each", "KB/agent", memory["ours used"], target=Target(10.0)),
    ]


class _Meter:
    """The growth of memory and of the number of asyncio tasks, and the seconds, from when it was made."""

    def __init__(self, memory: str) -> None:
        self._read = _resident_bytes if memory == "resident" else _traced_bytes
        if memory == "traced":
            tracemalloc.start()
        gc.collect()
        self._tasks = len(asyncio.all_tasks())
        self._bytes = self._read()
        self._watch = Stopwatch()

    def read(self, agents: int) -> Sample:
        seconds, cpu = self._watch.read()
        tasks = len(asyncio.all_tasks()) - self._tasks
        gc.collect()
        kilobytes = (self._read() - self._bytes) / agents / 1024
        return {"kb": kilobytes, "seconds": seconds, "cpu_seconds": cpu, "tasks": tasks, "agents": agents}


async def floor_agents(folder: Path, *, agents: int, tools: str, memory: str) -> Sample:
    """An agent is a small object in a dict and a row on disk."""
    journal = floor.GroupCommit(folder)
    made: dict[str, floor.FloorAgent] = {}
    shared = tuple(_tools_of(-1))

    async def create(number: int) -> None:
        own = tuple(_tools_of(number)) if tools == "own" else shared
        agent = floor.FloorAgent(f"agent-{number}", '{"model":"scripted"}', own)
        made[agent.id] = agent
        await journal.write(floor.INSERT_AGENT, (agent.id, agent.definition))

    await create(-1)
    meter = _Meter(memory)
    await asyncio.gather(*map(create, range(agents)))
    return meter.read(agents)


async def ours_agents(folder: Path, *, agents: int, tools: str, memory: str) -> Sample:
    shared = _tools_of(-1) if tools == "shared" else []
    async with AsyncAgentSessionManager(folder, tools=shared, model="scripted") as manager:

        async def create(number: int) -> None:
            await manager.create_agent(f"agent-{number}", tools=_tools_of(number) if tools == "own" else ())

        await manager.create_agent("first")
        meter = _Meter(memory)
        await asyncio.gather(*map(create, range(agents)))
        sample = meter.read(agents)
        assert all(agent.record.started for agent in manager.active_sessions.values())
    return sample


async def ours_used_agents(folder: Path, *, agents: int) -> Sample:
    """What an agent keeps after its first task; few run at the same time, since what a loop takes goes with it."""
    model = FunctionModel(lambda _: "Done.")
    async with AsyncAgentSessionManager(folder, model_factory=lambda _: model) as manager:

        async def use(number: int) -> None:
            agent = await manager.create_agent(f"agent-{number}", tools=_tools_of(number))
            await manager.run_task(agent, "Say that it is done.")

        await use(agents)
        meter = _Meter("resident")
        for begin in range(0, agents, _AT_ONCE):
            await asyncio.gather(*map(use, range(begin, min(begin + _AT_ONCE, agents))))
        return meter.read(agents)


def _tools_of(number: int) -> list[ToolFunction]:
    """Five functions of one agent, each a closure of its own."""

    def make(name: str) -> ToolFunction:
        async def page_tool(page: str, lines: int = 10) -> str:
            """Work on a page of the handbook."""
            return f"{name} of agent {number}: {page}, {lines} lines"

        page_tool.__name__ = name
        return page_tool

    return [make(name) for name in _TOOL_NAMES]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _BYTES_IN_PAGE


def _traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]
