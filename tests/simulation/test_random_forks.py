"""Forks that are killed at any moment: a witness counts what happens outside, and planted bugs show that it does."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import import_into_folder
from ai_whisperer.domain.forks import Effects
from ai_whisperer.replay.recording import forking, write_fork
from ai_whisperer.replay.recording.run import Run
from ai_whisperer.runtime.waiting import recalling
from ai_whisperer.runtime.waiting.approvals import Approvals
from ai_whisperer.runtime.waiting.permission import Permission
from ai_whisperer.runtime.waiting.recalling import ApprovalsInFork, PermissionInFork
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.tools.function import as_tools
from tests.planted import Caught, SignedSearch, search
from tests.simulation.recording_stage import lived
from tests.simulation.test_forks_of_forks import forked_at
from tests.simulation.test_recorded_effects import TOOLS, charged, fork_on, say, work

_SEEDS = 6
_LONGEST_SECONDS = 12.0
AGAIN, PLAYED, UNASKED = "was charged again", "was charged while it was played", "was charged and nobody was asked"
STUCK = "somebody waits for what was recorded"


def failure_of(seed: int, folder: Path) -> str | None:
    """What is wrong with a fork from somewhere, that is killed once and goes on; None if nothing is."""
    chance = random.Random(seed)
    source = lived(work, say=say, tools=TOOLS)
    ((recording, calls),) = forked_at(source, lambda points: [chance.choice(points[2:9])])
    effects = chance.choice((Effects.RECORDED, Effects.ASK))
    file = folder / f"fork-{seed}.zip"
    charged.clear()
    write_fork(recording, file, effects=effects, calls=calls)
    if charged:
        return f"{charged} {PLAYED}"
    disk = SimulatedDisk(seed)
    import_into_folder(disk.folder, file)
    ended: list[str] = []
    seconds = chance.random() * _LONGEST_SECONDS

    async def until_killed() -> None:
        await fork_on(disk, say).open()
        await asyncio.sleep(seconds)
        disk.crash()

    async def go_on() -> None:
        async with fork_on(disk, say, after_seconds=seconds) as manager:
            await asyncio.sleep(_LONGEST_SECONDS)
            ended.extend(each.result.final for each in await manager.list_tasks() if each.result)

    try:
        simulate(until_killed(), seed=seed)
        simulate(go_on(), seed=seed + 1)
    finally:
        disk.close()
    if charged:
        return f"{charged} {AGAIN if effects is Effects.RECORDED else UNASKED}"
    is_stuck = effects is Effects.RECORDED and ended.count("all is charged") < 2
    return f"only {ended} was done: {STUCK}" if is_stuck else None


def test_no_fork_does_outside_what_its_session_did_or_nobody_allows(tmp_path: Path) -> None:
    assert {seed: failure for seed in range(_SEEDS) if (failure := failure_of(seed, tmp_path))} == {}


def call_tools_in_the_strict_part(patch: pytest.MonkeyPatch) -> None:
    def live(*args: Any, **settings: Any) -> Run:
        return Run(*args, **{**settings, "tools": {each.name: each for each in as_tools(TOOLS)}, "live_tools": True})

    patch.setattr(forking, "Run", live)


def call_again_what_was_recorded(patch: pytest.MonkeyPatch) -> None:
    def made(self: PermissionInFork, *call: Any) -> Any:
        return Permission.admit(self, *call) if self._recorded.result_of(call[2]) is None else None

    patch.setattr(PermissionInFork, "admit", made)


def ask_only_where_the_session_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ApprovalsInFork, "_is_needed", Approvals._is_needed)


def forget_what_the_fork_has_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recalling, "_feed", lambda *_: None)


PLANTED = {
    plant.__name__: (plant, sign)
    for plant, sign in (
        (call_tools_in_the_strict_part, PLAYED),
        (call_again_what_was_recorded, AGAIN),
        (ask_only_where_the_session_asked, UNASKED),
        (forget_what_the_fork_has_told, STUCK),
    )
}


@pytest.mark.planted("forks", unit="seed")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught_by_its_sign(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caught: Caught
) -> None:
    plant, sign = PLANTED[name]
    plant(monkeypatch)
    signed = SignedSearch(sign, lambda seed: failure_of(seed, tmp_path))
    assert search(range(_SEEDS), signed.failure_of, caught), f"{name} was not caught in {_SEEDS} seeds {signed.told}"
