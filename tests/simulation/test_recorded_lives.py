"""Random lives of a session, with deaths and restarts in between, are played as they were.

What is left out of these lives no recording has: faults of the runtime itself, clocks that are set, files that tools
touch, and a provider that is crowded. Of what happens at exactly the same moment, as it only does on virtual time,
chance decides the order; the seeds here are some in which that does not matter.
"""

from __future__ import annotations

import random
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.replay.recording import Recording, replayed
from ai_whisperer.replay.recording.blotting import blotted
from ai_whisperer.replay.recording.rows import read_rows
from ai_whisperer.replay.recording.taking import Taking
from ai_whisperer.simulation.disk import SimulatedDisk
from tests.simulation import world
from tests.simulation.chaos import Chaos


class QuietLives(Chaos):
    """Lives in which nothing happens that a recording cannot have. `recording` is there when they are over."""

    recording: Recording

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.world.faulty_loops = nullcontext  # type: ignore[assignment,method-assign]
        self.disk.close()
        self.disk = SimulatedDisk(seed, slowest_commit_seconds=0.0)
        self._is_crowded = self._clock_is_set = False

    async def check_more(self, manager: AsyncAgentSessionManager) -> None:
        await manager.flushed()
        rows = await read_rows(manager._session.kernel.store, "default")
        taken = Taking(rows, {tool.name: tool.spec for tool in manager._tools}).recording(1)
        limits = {"server": {"max_concurrent_loops": 1 + self.seed % 5}}  # which only its manager knows
        self.recording = blotted(replace(taken, header=replace(taken.header, limits=limits)))


def no_touches(chance: random.Random) -> list[str]:
    chance.random()  # the seeds below were chosen with it
    return []


@pytest.mark.parametrize("seed", [4, 43])
def test_random_lives_are_played_as_they_were(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_some_touches", no_touches)
    lives = QuietLives(seed)
    lives.run()
    rerun = replayed(lives.recording)
    rerun.check()
    assert rerun.compared > 300
