"""`python -m bench.growth`: what grows with the number of agents, with what is stored, and with the length of a thread.

Prints a table for each, writes `results/growth.json` and draws `results/growth.png` where matplotlib is installed. A
cost that stays flat costs the same on the first day and after a year.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.agents import AgentRecord, AgentState
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite import SqliteStore
from bench import growth_plot, w10_history
from bench.probe import REPOSITORY, Sample, Stopwatch, in_fresh_process

RESULTS = REPOSITORY / "bench" / "results"
STORED = (1_000, 10_000, 100_000, 300_000)
AGENTS = (10, 100, 1_000, 10_000, 50_000)
THREAD = (1, 10, 40, 100, 200, 400)
WINDOW_TOKENS = 8_000
"""Of the agent whose thread grows."""

_TIMES = 20
_IN_UNIT = 500
_SAID = "The build of the second module is green, and so are its tests. " * 4

Table = Mapping[int, Sample]
"""The measurements of each size."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest sizes out")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where databases are made")
    given = parser.parse_args(arguments)
    tables = {
        "stored tasks and mails": _taken(given, "items", STORED, w10_history.opened),
        "agents": _taken(given, "agents", AGENTS, crowded),
        "tasks in a thread": _taken(given, "length", THREAD, continued),
    }
    for title, table in tables.items():
        print(_printed(title, table))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "growth.json").write_text(json.dumps(tables, indent=2) + "\n", encoding="utf-8")
    print(growth_plot.draw(tables, RESULTS / "growth.png"))
    return 0


def _taken(given: argparse.Namespace, name: str, sizes: Sequence[int], function: Callable[..., Any]) -> Table:
    taken: dict[int, Sample] = {}
    for size in sizes[:-1] if given.quick else sizes:
        print(f"{name} {size:,}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="growth-", dir=given.folder) as place:
            taken[size] = in_fresh_process(function, **{name: size})(Path(place))
    return taken


async def crowded(folder: Path, *, agents: int) -> Sample:
    """A session with so many agents that have nothing to do."""
    store = SqliteStore.open(folder, synchronous="OFF")
    for begin in range(0, agents, _IN_UNIT):
        unit = Unit()
        for number in range(begin, min(begin + _IN_UNIT, agents)):
            unit.insert_agent(
                AgentRecord(
                    session_id=w10_history.SESSION,
                    id=f"agent-{number}",
                    definition=AgentDefinition(model="scripted"),
                    state=AgentState.IDLE,
                    started=True,
                    created_at=1.0,
                )
            )
        await store.submit(unit)
    await store.close()
    await w10_history.open_and_close(folder)
    watch = Stopwatch()
    await w10_history.open_and_close(folder)
    sample = {"opened and closed": watch.read()[1] * 1000}
    async with AsyncAgentSessionManager(folder, model="scripted") as manager:
        snapshot = await manager.snapshot()
        sample["a snapshot, KB"] = len(msgspec.json.encode(snapshot)) / 1000
        await manager.pause_agent("agent-0")
        watch = Stopwatch()
        for _ in range(_TIMES):
            await manager.snapshot()
        sample["a snapshot"] = watch.read()[1] / _TIMES * 1000
        watch = Stopwatch()
        for _ in range(_TIMES):
            await manager.broadcast_event("nobody_waits_for_this")
        sample["an event that nobody waits for"] = watch.read()[1] / _TIMES * 1000
        watch = Stopwatch()
        for _ in range(_TIMES):
            await manager.send_task("agent-0", "One more.")
        sample["a task accepted"] = watch.read()[1] / _TIMES * 1000
    return sample


async def continued(folder: Path, *, length: int) -> Sample:
    """One more exchange in a thread of so many."""
    shown: list[int] = []

    def answer(request: ModelRequest) -> str:
        shown.append(len(msgspec.json.encode(request.turns)))
        return _SAID

    model = FunctionModel(answer)
    async with AsyncAgentSessionManager(folder, model_factory=lambda _: model) as manager:
        await manager.create_agent("writer", {"context": {"window": WINDOW_TOKENS}})
        for _ in range(length):
            await manager.run_task("writer", _SAID, thread_id="talk")
        watch = Stopwatch()
        for _ in range(_TIMES):
            await manager.run_task("writer", _SAID, thread_id="talk")
        milliseconds = watch.read()[1] / _TIMES * 1000
    return {"an exchange": milliseconds, "a request, KB": sum(shown[-_TIMES:]) / _TIMES / 1000}


def _printed(title: str, table: Table) -> str:
    names = list(next(iter(table.values())))
    width = max(map(len, names))
    lines = [f"\n{title:<{width}}" + "".join(f"{size:>12,}" for size in table) + "    last ÷ first"]
    for name in names:
        values = [sample[name] for sample in table.values()]
        ratio = values[-1] / values[0] if values[0] else 0.0
        lines.append(f"{name:<{width}}" + "".join(f"{value:>12,.3f}" for value in values) + f"{ratio:>16.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
