"""W10, growth: what a session costs with more agents, with more that is stored, and in a longer thread.

A cost that stays flat is the same on the first day and after a year.
"""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore
from bench.growth_plot import Table, drawn, printed
from bench.growth_stored import CALLS, DISK, OPENED, agent_of, least_ms, opening_ms, stored
from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W10"
WINDOW_TOKENS = 8_000
"""Of the agent whose thread grows."""
EXCHANGES = 20
"""So many are measured together: a conversation is made shorter several times meanwhile."""
EXCHANGE = "an exchange"

_MAX_GROWTH = 1.3
_TIMES = 20
_TALKS = 3
_IN_UNIT = 500
_SAID = "The build of the second module is green, and so are its tests. " * 16


async def crowded(folder: Path, *, agents: int) -> Sample:
    """A session with so many agents that have nothing to do."""
    store = SqliteStore.open(folder, synchronous="OFF")
    for begin in range(0, agents, _IN_UNIT):
        unit = Unit()
        for number in range(begin, min(begin + _IN_UNIT, agents)):
            unit.insert_agent(agent_of(number))
        await store.submit(unit)
    await store.close()
    sample = {OPENED: await opening_ms(folder)}
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        await manager.pause_agent("agent-0")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "a snapshot": manager.snapshot,
            "an event that nobody waits for": lambda: manager.broadcast_event("nobody_waits_for_this"),
            "a task accepted": lambda: manager.send_task("agent-0", "One more."),
        }
        sample["a snapshot, KB"] = len(msgspec.json.encode(await manager.snapshot())) / 1000
        for name, call in calls.items():
            sample[name] = await least_ms(call, batches=_TIMES)
    return sample


async def continued(folder: Path, *, length: int) -> Sample:
    """More exchanges in a thread of so many, in which the agent's model can take no more than its window."""
    shown: list[int] = []

    def answer(request: ModelRequest) -> str:
        shown.append(len(msgspec.json.encode(request.turns)))
        return _SAID

    model = FunctionModel(answer)
    async with AsyncAgentSessionManager(folder, model_factory=lambda _: model) as manager:
        await manager.create_agent("writer", {"context": {"window": WINDOW_TOKENS}})
        for _ in range(length):
            await manager.run_task("writer", _SAID, thread_id="talk")
        shown.clear()
        talks = 0

        async def talk() -> None:
            nonlocal talks
            talks += 1
            for _ in range(EXCHANGES):
                await manager.run_task("writer", _SAID, thread_id="talk")

        milliseconds = await least_ms(talk, batches=_TALKS) / EXCHANGES
    return {EXCHANGE: milliseconds, "shown to the model in an exchange, KB": sum(shown) / EXCHANGES / talks / 1000}


TABLES: Mapping[str, tuple[Callable[..., Any], str, tuple[int, ...]]] = {
    "stored tasks and mails": (stored, "items", (1_000, 10_000, 100_000, 300_000)),
    "agents": (crowded, "agents", (10, 100, 1_000, 10_000, 50_000)),
    "tasks in the thread": (continued, "length", (1, 10, 40, 100, 200, 400)),
}
"""By what grows: what is measured, and with which sizes."""


def probes(*, quick: bool) -> list[Probe]:
    return [
        Probe(_name(title, size), in_fresh_process(function, **{parameter: size}))
        for title, (function, parameter, sizes) in TABLES.items()
        for size in (sizes[:-1] if quick else sizes)
    ]


def figures(samples: Samples) -> list[Figure]:
    flat = Target(_MAX_GROWTH, of="raw")

    def both(title: str, value: str, *, first: int, unit: str = "ms", target: Target | None = flat) -> Figure:
        last = _sizes(samples, title)[-1]
        small, large = (values_of(samples, _name(title, size), value) for size in (first, last))
        return Figure(f"{value}, {title} {first:,} → {last:,}", unit, large, raw=small, target=target)

    on_disk, agents, in_thread = TABLES
    return [
        *(both(on_disk, value, first=1_000) for value in (OPENED, *CALLS)),
        both(on_disk, DISK, first=1_000, unit="bytes", target=None),
        both(agents, "a task accepted", first=10),
        both(in_thread, EXCHANGE, first=40),
    ]


def tables(samples: Samples, *, facts: Mapping[str, Any], file: Path) -> str:
    """All that was measured as text; drawn into the file, too, where matplotlib is installed."""
    found = {title: _table(samples, title) for title in TABLES}
    return "\n".join([*(printed(title, table) for title, table in found.items()), drawn(found, facts=facts, file=file)])


def _table(samples: Samples, title: str) -> Table:
    """The medians of all rounds."""
    table = {}
    for size in _sizes(samples, title):
        rounds = samples[_name(title, size)]
        table[size] = {value: statistics.median(each[value] for each in rounds) for value in rounds[0]}
    return table


def _sizes(samples: Samples, title: str) -> list[int]:
    """The sizes that were measured."""
    return [size for size in TABLES[title][2] if _name(title, size) in samples]


def _name(title: str, size: int) -> str:
    return f"{title} {size}"
