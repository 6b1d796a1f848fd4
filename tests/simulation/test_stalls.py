"""When a model that says nothing is given up, and when it is not to blame."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.errors import ModelTimeoutError
from ai_whisperer.models.base import ALIVE, Finished, TextDelta
from ai_whisperer.runtime.agents.stall import StallWatch
from ai_whisperer.simulation.loop import SimulationLoop, simulate
from tests.simulation.stage import play
from tests.simulation.test_model_faults import GOOD, Event, StreamModel, with_model


def test_a_model_may_take_longer_for_its_first_piece_than_between_two() -> None:
    model = StreamModel([500.0, TextDelta(text="a"), 110.0, TextDelta(text="b"), Finished()])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "ab"
        assert model.asked == [1]

    play(scenario, models=with_model(model))


@pytest.mark.parametrize(
    ("first", "seconds"),
    [
        ([1_000.0, *GOOD], 600),
        ([ALIVE, 1_000.0, *GOOD], 600),
        ([50.0, ALIVE, 1_000.0, *GOOD], 650),
        ([TextDelta(text="a"), 1_000.0, *GOOD], 120),
        ([TextDelta(text="a"), 100.0, ALIVE, 1_000.0, *GOOD], 220),
    ],
)
def test_a_silence_is_ended_after_its_patience(first: list[Event], seconds: float) -> None:
    model = StreamModel(first, GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"retry": {"first_delay_seconds": 0}})
        begun = asyncio.get_running_loop().time()
        assert await manager.run_task("alice", "go") == "fine"
        assert seconds <= asyncio.get_running_loop().time() - begun < seconds + 2
        (note,) = [note for note in await manager.notifications() if note.name == "step.retried"]
        waited = (
            "120 seconds (stall_seconds)" if isinstance(first[0], TextDelta) else "600 seconds (first_token_seconds)"
        )
        assert note.params["error"]["message"] == f"The model sent nothing for {waited}."

    play(scenario, models=with_model(model))


def test_both_kinds_of_patience_can_be_set() -> None:
    model = StreamModel([30.0, TextDelta(text="a"), 30.0, *GOOD])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        retry = {"first_token_seconds": 20, "stall_seconds": 40, "max_attempts": 1}
        await manager.create_agent("hasty", {"retry": retry})
        await manager.create_agent("calm", {"retry": retry | {"first_token_seconds": 40}})
        ended = await manager.wait_task(await manager.send_task("hasty", "go"))
        assert ended.error is not None
        assert ended.error.message == "The model sent nothing for 20 seconds (first_token_seconds)."
        assert await manager.run_task("calm", "go") == "afine"

    play(scenario, models=with_model(model))


def test_signs_of_life_keep_a_request_up_until_it_takes_too_long_in_all() -> None:
    model = StreamModel([event for _ in range(100) for event in (100.0, ALIVE)])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_answer_seconds": 3_000}})
        begun = asyncio.get_running_loop().time()
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.state is TaskState.FAILED
        assert ended.error is not None
        assert "longer than 3,000 seconds" in ended.error.message
        assert 3_000 <= asyncio.get_running_loop().time() - begun < 3_002

    play(scenario, models=with_model(model))


def hold_up(seconds: float) -> None:
    """As if a callback took so long."""
    cast(SimulationLoop, asyncio.get_running_loop())._virtual_time += seconds


@pytest.mark.parametrize("seed", range(10))
def test_what_came_while_the_event_loop_was_held_up_is_taken_before_anybody_is_blamed(seed: int) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        watch, came = StallWatch(loop), asyncio.Event()
        with watch.guard(120.0) as guard:
            guard.take(ALIVE)
            loop.call_later(100, hold_up, 1_000)
            loop.call_later(100, came.set)
            await came.wait()
            guard.take(TextDelta(text="x"))

    simulate(scenario(), seed=seed)


@pytest.mark.parametrize("held_up", [0.0, 50.0])
def test_a_silence_is_one_even_if_the_event_loop_is_always_late(held_up: float) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        def busy() -> None:
            hold_up(held_up)
            loop.call_later(1.0, busy)

        busy()
        begun = loop.time()
        with pytest.raises(ModelTimeoutError), StallWatch(loop).guard(120.0):
            await asyncio.Event().wait()
        assert 120 <= loop.time() - begun < 700

    simulate(scenario())
