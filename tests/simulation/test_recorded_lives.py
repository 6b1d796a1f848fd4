"""Random lives of a session, with deaths and restarts in between, are played as they were.

What is left out of these lives no recording has: faults of the runtime itself, clocks that are set, files that tools
touch, and a provider that is crowded. The seeds are not chosen.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.replay.recording import Recording, replayed
from ai_whisperer.replay.recording.blotting import blotted
from ai_whisperer.replay.recording.format import Entry
from ai_whisperer.replay.recording.rows import read_rows
from ai_whisperer.replay.recording.taking import Taking
from ai_whisperer.simulation.disk import SimulatedDisk
from tests.simulation.chaos import Chaos
from tests.simulation.world import World

SHORT = 8
SEEDS = range(1, 1 + int(os.environ.get("WHISPERER_TEST_RECORDED_LIVES", SHORT)))
LEAST_EQUAL = 0.87
"""So many of the lives are played as they were, at least. Of the others the first difference is none of the session."""


class QuietWorld(World):
    """A world in which nobody waits for things that tools touch."""

    def tools(self) -> list[Any]:
        tools = super().tools()
        for each in tools:
            each.touches = ()
        return tools

    async def _touch(self, touches: list[str], seconds: float) -> None:
        del touches
        await asyncio.sleep(seconds)


class QuietLives(Chaos):
    """Lives in which nothing happens that a recording cannot have. `recording` is there when they are over."""

    recording: Recording

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.world = QuietWorld(seed)
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


def recording_of(seed: int) -> Recording:
    lives = QuietLives(seed)
    lives.run()
    return lives.recording


def test_random_lives_are_played_as_they_were() -> None:
    different: dict[int, str] = {}
    for seed in SEEDS:
        rerun = replayed(recording_of(seed))
        if rerun.difference is not None:
            different[seed] = rerun.difference.sentence
        else:
            assert rerun.compared > 300
    if len(SEEDS) == SHORT:
        assert not different
    assert len(SEEDS) - len(different) >= LEAST_EQUAL * len(SEEDS), different


def _is_a_task_s_own_step(entry: Entry) -> bool:
    return entry.name == "step.finished" and entry.cause.startswith("task:")


def _later(entries: list[Entry], at: int) -> list[int]:
    """What the same task causes after that moment."""
    cause, before = entries[at].cause, entries[at].at
    return [n for n in range(at + 1, len(entries)) if entries[n].cause == cause and entries[n].at > before]


def _dropped(entries: list[Entry], at: int) -> list[Entry]:
    return [*entries[:at], *entries[at + 1 :]]


def _doubled(entries: list[Entry], at: int) -> list[Entry]:
    return [*entries[: at + 1], *entries[at:]]


def _changed(entries: list[Entry], at: int) -> list[Entry]:
    changed = replace(entries[at], params={**entries[at].params, "state": "lost"})
    return [*entries[:at], changed, *entries[at + 1 :]]


def _swapped(entries: list[Entry], at: int) -> list[Entry]:
    other = _later(entries, at)[0]
    swapped = list(entries)
    swapped[at] = replace(entries[other], seq=entries[at].seq, at=entries[at].at)
    swapped[other] = replace(entries[at], seq=entries[other].seq, at=entries[other].at)
    return swapped


def _mailed_to_another(entries: list[Entry], at: int) -> list[Entry]:
    mail = next(n for n in range(at, len(entries)) if entries[n].name == "mail.sent")
    another = next(name for name in ("ann", "ben") if name != entries[mail].params["recipient"])
    changed = replace(entries[mail], params={**entries[mail].params, "recipient": another})
    return [*entries[:mail], changed, *entries[mail + 1 :]]


@pytest.mark.parametrize("mutation", [_dropped, _doubled, _changed, _swapped, _mailed_to_another])
def test_what_is_another_in_the_log_is_told(mutation: Any) -> None:
    recording = recording_of(4)
    assert replayed(recording).difference is None
    entries = list(recording.entries)
    for part in (0.3, 0.5, 0.7):
        after = part * len(entries)
        steps = [
            n for n, each in enumerate(entries) if n > after and _is_a_task_s_own_step(each) and _later(entries, n)
        ]
        changed = replace(recording, entries=tuple(mutation(entries, steps[0])))
        assert replayed(changed).difference is not None


def test_an_effect_that_is_repeated_is_told() -> None:
    recording = recording_of(4)
    done = [each for each in recording.results if each.seq]
    for each in (done[0], done[len(done) // 2], done[-1]):
        repeated = replace(recording, results=tuple(other for other in recording.results if other is not each))
        assert replayed(repeated).difference is not None
