"""The process dies around due instants: each of them has still happened once in the end."""

from __future__ import annotations

import asyncio
import random

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import EPOCH, VirtualClock, simulate
from tests.effort import some, spread
from tests.simulation.stage import opened

END = 75.0

DUE = {"prompts": [10, 20, 30, 40, 50, 60, 70], "events": [25, 50, 75], "minutes": [60]}
"""When each schedule is due, in seconds from its creation or, for the last one, from the beginning."""


class Witness:
    """Lets processes live one after the other on one disk, and looks at what is there in the end."""

    def __init__(self, seed: int) -> None:
        self._disk = SimulatedDisk(seed)
        self._seed = seed
        self._lived = 0.0
        self.created_at = 0.0

    def live(self, *, until: float) -> None:
        """A process that dies at that time."""

        async def process() -> None:
            manager = self._opened()
            await manager.open()
            if self._lived == 0.0:
                await self._prepare(manager)
            await asyncio.sleep(until - self._lived - asyncio.get_running_loop().time())
            self._disk.crash()

        simulate(process(), seed=self._seed + round(self._lived * 1000))
        self._lived = until

    def be_down(self, *, seconds: float) -> None:
        self._lived += seconds

    def look(self) -> tuple[dict[str, list[int]], list[TaskState]]:
        """What fired, by schedule, in seconds from the creation; and what has become of the tasks."""

        async def process() -> tuple[dict[str, list[int]], list[TaskState]]:
            async with self._opened() as manager:
                await asyncio.sleep(END + 4 - self._lived)
                notes = [note for note in await manager.notifications(limit=10_000) if note.name == "schedule.fired"]
                tasks = await manager.list_tasks("alice", limit=1000)
                assert {task.id for task in tasks} == {n.params["taskId"] for n in notes if "taskId" in n.params}
                events = await manager._session.kernel.store.events("default", limit=1000)
                assert {event.id for event in events} == {n.params["eventId"] for n in notes if "eventId" in n.params}
                assert not [
                    note for note in await manager.notifications(limit=10_000) if note.name == "schedule.missed"
                ]
                fired: dict[str, list[int]] = {name: [] for name in DUE}
                for note in notes:
                    since = EPOCH if note.params["scheduleId"] == "minutes" else self.created_at
                    fired[note.params["scheduleId"]].append(round(note.params["dueAt"] - since))
                assert [each.fired for each in manager.list_schedules()] == [len(DUE[name]) for name in DUE]
                return fired, [task.state for task in tasks]

        try:
            return simulate(process(), seed=self._seed)
        finally:
            self._disk.close()

    def _opened(self) -> AsyncAgentSessionManager:
        clock = VirtualClock().later(self._lived)
        return opened(self._disk.open(), lambda _: "done", latency_seconds=0.2, clock=clock, seed=round(self._lived))

    async def _prepare(self, manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        created = await manager.create_schedule(
            "alice", interval_seconds=10, prompt="go", missed="all", schedule_id="prompts"
        )
        self.created_at = created.created_at
        await manager.create_schedule(interval_seconds=25, event="tick", missed="all", schedule_id="events")
        await manager.create_schedule("alice", cron="* * * * *", prompt="go", missed="all", schedule_id="minutes")


@pytest.mark.parametrize("milliseconds", spread(58, usual=15, first=0))
def test_a_crash_at_any_point_around_due_instants_neither_loses_nor_doubles_one(milliseconds: int) -> None:
    witness = Witness(milliseconds)
    for due in (10, 50, 60):
        witness.live(until=due - 0.002 + milliseconds / 1000)
    assert witness.look() == (DUE, [TaskState.COMPLETED] * 8)


@pytest.mark.parametrize("seed", range(some(12)))
def test_crashes_and_downtime_at_random_neither_lose_nor_double_an_instant(seed: int) -> None:
    chance = random.Random(seed)
    witness = Witness(seed)
    now = chance.uniform(0.2, 12)
    while now < END:
        witness.live(until=now)
        down = chance.choice([0.0, 0.0, 1.0, chance.uniform(0, 30)])
        witness.be_down(seconds=min(down, END - now))
        now += down + chance.choice([0.001, 0.01, 0.02, 5.0, chance.uniform(0, 20)])
    fired, states = witness.look()
    assert fired == DUE
    assert states == [TaskState.COMPLETED] * 8  # however often it ran when the process died
