"""A fork is a session like all others: it is recorded, replayed and forked, whatever becomes of its effects outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager, import_into_folder
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.forks import Effects, RecordedCall
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.replay.recording import (
    Recording,
    calls_after,
    fork_points,
    record,
    record_for_fork,
    replayed,
    write_fork,
)
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.base import Store
from tests.simulation.recording_stage import lived
from tests.simulation.stage import call, round_of, until
from tests.simulation.test_recorded_effects import TOOLS, charged, fork_on, say, work

Forked = tuple[Recording, list[RecordedCall]]


def forked_at(store: Store, choose: Callable[[list[int]], list[int]]) -> list[Forked]:
    async def read() -> list[Forked]:
        points = choose(fork_points(await store.notifications("default", after=0, limit=10_000)))
        return [(await record_for_fork(store, at=at, tools=TOOLS), await calls_after(store, at=at)) for at in points]

    return asyncio.run(read())


async def charge_again(manager: AsyncAgentSessionManager, *, is_asked: bool) -> None:
    """What the helper did in the session too, and with the same arguments."""
    await manager.at_rest()
    await manager.send_task("helper", "charge too")
    if is_asked:
        await until(lambda: bool(manager._session.approvals.pending()))
        (asked,) = await manager.list_approvals()
        await manager.approve(asked.id)
    await manager.at_rest()


@pytest.mark.parametrize("place", [2, -1], ids=["from the beginning", "from the end"])
@pytest.mark.parametrize("effects", Effects)
def test_a_fork_is_recorded_and_forked_again_wherever_a_session_can_be(
    tmp_path: Path, effects: Effects, place: int
) -> None:
    """Also if a person was asked about a call there that had been made without asking, with the same arguments."""
    source = lived(work, say=say, tools=TOOLS)
    ((recording, calls),) = forked_at(source, lambda points: [points[place]])
    write_fork(recording, tmp_path / "fork.zip", effects=effects, calls=calls)
    disk = SimulatedDisk()
    import_into_folder(disk.folder, tmp_path / "fork.zip")

    async def live() -> None:
        async with fork_on(disk, say) as manager:
            if effects is Effects.ASK and place > 0:
                for _ in range(3):
                    await until(lambda: bool(manager._session.approvals.pending()))
                    await manager.approve((await manager.list_approvals())[0].id)
            await charge_again(manager, is_asked=effects is not Effects.LIVE)

    charged.clear()
    simulate(live())
    assert charged.count(10) == (2 if place > 0 and effects is not Effects.RECORDED else 1)
    charged.clear()
    disk.crash()
    store = disk.open()
    assert replayed(asyncio.run(record(store, tools=TOOLS))).difference is None
    for number, (again, later) in enumerate(forked_at(store, lambda points: points[::3] + points[-1:])):
        write_fork(again, tmp_path / f"again-{number}.zip", effects=effects, calls=later)
    asyncio.run(store.close())
    disk.close()
    assert charged == []


def test_a_fork_from_any_number_that_works_can_be_recorded(tmp_path: Path) -> None:
    """Also if a task was about to begin there, which no process that is closed leaves so."""
    for recording, calls in forked_at(lived(work, say=say, tools=TOOLS), lambda points: points[1::2]):
        file = tmp_path / f"fork-{recording.header.last}.zip"
        write_fork(recording, file, effects=Effects.RECORDED, calls=calls)
        disk = SimulatedDisk()
        import_into_folder(disk.folder, file)

        async def live(disk: SimulatedDisk) -> None:
            async with fork_on(disk, say) as manager:
                await manager.at_rest()

        simulate(live(disk))
        disk.crash()
        store = disk.open()
        assert replayed(asyncio.run(record(store, tools=TOOLS))).difference is None, recording.header.last
        asyncio.run(store.close())
        disk.close()


def test_a_person_is_asked_about_calls_of_all_agents_also_of_those_that_come_later(tmp_path: Path) -> None:
    ((recording, _),) = forked_at(lived(work, say=say, tools=TOOLS), lambda points: points[-1:])
    write_fork(recording, tmp_path / "fork.zip", effects=Effects.ASK)
    disk = SimulatedDisk()
    import_into_folder(disk.folder, tmp_path / "fork.zip")
    charging = {"prompt": "p", "tools": ["charge"]}

    def says(request: ModelRequest) -> Answer | str:
        return call("charge", amount=7) if round_of(request) == 0 else "I have charged"

    async def live() -> None:
        async with fork_on(disk, says) as manager:
            await manager.create_agent("newcomer", charging)
            await manager.stop_agent("helper")
            await manager.start_agent("helper", {**charging, "prompt": "q"})
            for agent in ("newcomer", "helper"):
                await manager.send_task(agent, "charge")
            await until(lambda: len(manager._session.approvals.pending()) == 2)
            assert charged == []

    charged.clear()
    simulate(live())
    disk.close()
