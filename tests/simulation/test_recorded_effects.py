"""Forks with the effects `recorded`: what the session did too is not done again, a person is asked about the rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, import_into_folder, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.forks import Effects
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.replay.recording import (
    calls_after,
    compare,
    fork_points,
    record_for_fork,
    record_to_compare,
    write_fork,
)
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.store.base import Store
from tests.simulation.recording_stage import lived
from tests.simulation.stage import Say, call, opened, prompt_of, round_of, until

charged: list[int] = []
"""Whose witness it is: all that was charged, by anybody."""
looked: list[str] = []


@tool
async def charge(amount: int) -> str:
    """Charge so much: an effect outside, which must not happen twice."""
    await asyncio.sleep(1)
    charged.append(amount)
    return f"charged {amount}, number {len(charged)}"


@tool(idempotent=True)
async def look_up(what: str) -> str:
    """Look something up, which harms nothing."""
    looked.append(what)
    return f"{what} is fine"


TOOLS = (charge, look_up)


@pytest.fixture(autouse=True)
def witness() -> None:
    charged.clear()
    looked.clear()


def say(request: ModelRequest) -> Answer | str:
    """A clerk who charges, lets a helper charge, and charges again."""
    number = round_of(request)
    if request.agent_id == "helper":
        return call("charge", amount=10) if number == 0 else "I have charged"
    if prompt_of(request) == "charge":
        steps = [
            call("look_up", what="the rate"),
            call("charge", amount=1),
            call("delegate_task", to_agent="helper", task="charge too"),
        ]
    else:  # what the helper has reported
        steps = [call("charge", amount=2), call("look_up", what="the end")]
    return steps[number] if number < len(steps) else "all is charged"


async def work(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("clerk", {"prompt": "p", "tools": ["charge", "look_up", "delegate_task"]})
    await manager.create_agent("helper", {"prompt": "p", "tools": ["charge"]})
    await manager.send_task("clerk", "charge")
    await manager.at_rest()


def forked(tmp_path: Path, *, say: Say = say) -> tuple[Store, Path, int]:
    """A session that has charged three times, and a fork of it before the first of these as a file."""
    store = lived(work, say=say, tools=TOOLS)

    async def read() -> tuple[Any, Any]:
        log = await store.notifications("default", after=0, limit=10_000)
        first = next(note.seq for note in log if note.params.get("tool") == "charge")
        at = max(point for point in fork_points(log) if point < first)
        return await record_for_fork(store, at=at, tools=TOOLS), await calls_after(store, at=at)

    recording, calls = asyncio.run(read())
    file = tmp_path / "fork.zip"
    write_fork(recording, file, effects=Effects.RECORDED, calls=calls)
    assert charged == [1, 10, 2], "playing has charged again"
    charged.clear()
    looked.clear()
    return store, file, len(calls)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SimulatedDisk]:
    """A disk with a fork of the session from before its first charge."""
    disk = SimulatedDisk()
    import_into_folder(disk.folder, forked(tmp_path)[1])
    yield disk
    disk.close()


def fork_on(disk: SimulatedDisk, say: Say, *, after_seconds: float = 0.0) -> AsyncAgentSessionManager:
    return opened(disk.open(), say, tools=TOOLS, clock=VirtualClock(time.time()).later(after_seconds))


def test_a_fork_repeats_no_effect_of_its_session(tmp_path: Path) -> None:
    source, file, count = forked(tmp_path)
    disk = SimulatedDisk()
    import_into_folder(disk.folder, file)

    async def go_on() -> Any:
        async with fork_on(disk, say) as manager:
            await manager.at_rest()
            tasks = await manager.list_tasks()
            assert [each.result.final for each in tasks if each.result and each.agent_id == "clerk"] == [
                "all is charged"
            ] * 2
            return await record_to_compare(manager._session.kernel.store, "default")

    fork = simulate(go_on())
    disk.close()
    assert (charged, looked, count) == ([], [], 4)
    found = compare(asyncio.run(record_to_compare(source, "default")), fork)
    assert (found.is_same, found.other_answers) == (True, 0), found


@pytest.mark.parametrize("seconds", [0.0, 0.9, 1.5, 2.4, 3.6, 4.8, 6.0, 7.2])
def test_a_fork_that_is_killed_in_the_middle_repeats_no_effect_either(disk: SimulatedDisk, seconds: float) -> None:
    async def until_killed() -> None:
        manager = fork_on(disk, say)
        await manager.open()
        await asyncio.sleep(seconds)
        disk.crash()

    async def go_on() -> None:
        async with fork_on(disk, say, after_seconds=seconds) as manager:
            await manager.at_rest()
            results = [each.result for each in await manager.list_tasks()]
            assert {each.final for each in results if each} == {"all is charged", "I have charged"}

    simulate(until_killed())
    simulate(go_on(), seed=1)
    assert (charged, looked) == ([], [])


def test_a_call_that_was_not_recorded_waits_for_a_person_unless_it_harms_nothing(disk: SimulatedDisk) -> None:
    def says_otherwise(request: ModelRequest) -> Answer | str:
        if request.agent_id == "helper" or prompt_of(request) == "charge":
            return say(request)
        steps = [call("charge", amount=3), call("look_up", what="something else")]
        return steps[round_of(request)] if round_of(request) < len(steps) else "all is charged"

    async def go_on() -> None:
        async with fork_on(disk, says_otherwise) as manager:
            await until(lambda: bool(manager._session.approvals.pending()))
            (asked,) = await manager.list_approvals()
            assert (asked.tool, asked.arguments, charged) == ("charge", '{"amount":3}', [])
            await manager.approve(asked.id)
            await manager.at_rest()
            assert (charged, looked) == ([3], ["something else"])

    simulate(go_on())


def test_what_a_person_wants_in_the_fork_is_new(disk: SimulatedDisk) -> None:
    """It follows from nothing that happened in the session, also if it is the same."""

    async def go_on() -> None:
        async with fork_on(disk, say) as manager:
            await manager.at_rest()
            await manager.send_task("helper", "charge too")
            await until(lambda: bool(manager._session.approvals.pending()))
            assert charged == []

    simulate(go_on())


def test_once_something_of_its_log_was_erased_a_fork_repeats_nothing_without_asking(disk: SimulatedDisk) -> None:
    """What is caused later could have the path of what was erased, and the result of that would not be its own."""

    async def until_killed() -> None:
        manager = fork_on(disk, say)
        await manager.open()
        await manager.create_agent("other")
        await manager.delete_agent("other")
        disk.crash()

    async def go_on() -> None:
        async with fork_on(disk, say, after_seconds=10) as manager:
            await until(lambda: bool(manager._session.approvals.pending()))
            assert [each.tool for each in await manager.list_approvals()] == ["charge"]

    simulate(until_killed())
    simulate(go_on(), seed=1)
    assert charged == []
