"""Hours of work of fifty agents leave nothing behind in memory."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from tests.effort import some
from tests.simulation.day import CRASHING, Day, nap, say
from tests.simulation.residue import residue_of
from tests.simulation.stage import opened


@pytest.fixture(autouse=True)
def crashing_loops(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The loops of one agent crash twice before they go on; what is logged would keep them."""
    request_model = AILoop._request_model

    async def crashing(self: AILoop) -> None:
        if self.task.agent_id == CRASHING and self.task.restarts < 2:
            raise RuntimeError("a fault of ours")
        await request_model(self)

    monkeypatch.setattr(AILoop, "_request_model", crashing)
    caplog.set_level(logging.CRITICAL)


def changes_over(*, hours: int) -> dict[str, tuple[int, int]]:
    """What there is more or less of after so many hours than after the first, in which much is made for good."""
    disk = SimulatedDisk()
    found: list[Counter[str]] = []

    async def main() -> None:
        store = disk.open()
        async with opened(store, say, tools=[nap]) as manager:
            day = Day(manager)
            await day.prepare()
            for hour in range(hours):
                await day.hour()
                if hour in (0, hours - 1):
                    found.append(residue_of(manager))
        await store.close()

    simulate(main())
    disk.close()
    before, after = found
    return {name: (before[name], after[name]) for name in before | after if before[name] != after[name]}


def test_after_hours_of_fifty_agents_memory_is_as_it_was_before() -> None:
    changes = changes_over(hours=some(8))
    assert changes.pop("Timers._heap", (0, 0))[1] < 200, "times that were cancelled lie about"
    assert changes.pop("EndedLeases._ends", (0, 0))[1] <= 1000, "more leases are remembered than are said to be"
    assert changes.pop("Trees._sizes", (0, 0))[1] <= 1000, "the sizes of more trees are kept than are said to be"
    made_once = changes.pop("ToolRegistry._with_rest", (0, 0))[1]
    assert made_once <= 50 * 30, "what agents are told of tools is kept more than once for each"
    assert changes == {}


@pytest.mark.planted("a day of 50 agents", name="keep what is known of trees")
def test_what_is_left_behind_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trees, "_left", lambda *_: None)
    assert {"Trees._used", "Trees._running"} <= set(changes_over(hours=3))
