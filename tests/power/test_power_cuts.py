"""Whenever the power is cut, and whatever has reached the disk by then: all that was told is there, once, in order.

`WHISPERER_TEST_POWER_CUTS` is about how many cuts are tried, `WHISPERER_TEST_POWER_SEED` the first seed. A seed is
played again by `python -m tests.power SEED`.
"""

from __future__ import annotations

import errno
import os
from collections import Counter

import pytest

from ai_whisperer.testing.power_vfs import KINDS, Interruption
from tests.planted import Caught, SignedSearch, search, searched
from tests.power.lives import LIVES, PowerLives
from tests.power.planted_bugs import PLANTED_BUGS
from tests.simulation.chaos import failure_in

CUTS = int(os.environ.get("WHISPERER_TEST_POWER_CUTS", "100"))
FIRST_SEED = int(os.environ.get("WHISPERER_TEST_POWER_SEED", "0"))
_SEEDS_FOR_A_PLANTED_BUG = 60


def test_no_power_cut_loses_or_repeats_what_was_told() -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + -(-CUTS // LIVES))
    broken: dict[int, str] = {}
    cuts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    outcomes = told = 0
    for seed in seeds:
        run = PowerLives(seed)
        if failure := failure_in(run.run):
            broken[seed] = failure
            print(f"power cuts: seed {seed}: {failure}", flush=True)
        cuts += run.cuts
        faults += run.failures
        outcomes += run.outcomes
        told += len(run.witness.told)
    where = ", ".join(f"{kind} {count}" for kind, count in cuts.most_common())
    print(
        f"power cuts: {sum(cuts.values())} ({where}) in {len(seeds)} seeds from {seeds.start}, {sum(faults.values())} "
        f"faults of the disk, {outcomes} outcomes looked at, {told} notifications told, {len(broken)} seeds broken"
    )
    assert broken == {}
    assert sum(cuts.values()) >= CUTS
    assert sum(faults.values()) >= CUTS // 20, "the disk hardly failed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_at_each_kind_of_call_loses_nothing(kind: str) -> None:
    for late in (False, True):
        run = PowerLives(5, lives=1, first=Interruption(kind=kind, number=1, late=late))
        run.run()
        assert run.cuts == {kind: 1}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize(("kind", "number"), [("wal.write", 150), ("wal.sync", 7)])
def test_a_log_that_cannot_be_written_stops_the_process_and_loses_nothing(kind: str, number: int, error: int) -> None:
    run = PowerLives(2, lives=1, first=Interruption(kind=kind, number=number, error=error))
    run.run()
    assert run.failures == {kind: 1}
    assert run.stopped == 1


def test_a_seed_replays_exactly() -> None:
    runs = [PowerLives(3) for _ in range(2)]
    for run in runs:
        run.run()
    assert runs[0].log == runs[1].log
    assert runs[0].cuts == runs[1].cuts
    assert runs[0].witness.told == runs[1].witness.told
    assert len(runs[0].witness.told) > 300


@pytest.mark.planted("power cuts", unit="seed")
@pytest.mark.parametrize("name", PLANTED_BUGS)
def test_a_planted_bug_is_caught_by_its_sign(name: str, monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    bug = PLANTED_BUGS[name]
    bug.plant(monkeypatch)
    found = SignedSearch(bug.sign, lambda seed: failure_in(PowerLives(seed).run))
    is_caught = search(searched(_SEEDS_FOR_A_PLANTED_BUG, shows_at=bug.shows_at), found.failure_of, caught)
    assert is_caught, f"{name} was not caught in {_SEEDS_FOR_A_PLANTED_BUG} seeds {found.told}"
