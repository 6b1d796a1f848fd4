"""A month of twenty agents with small windows loses no task, and what is kept of it stays within a bound.

By default it is a short month; `make soak` plays a whole one.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from tests.simulation import month
from tests.simulation.month import Month, Provider, read_page
from tests.simulation.residue import residue_of
from tests.simulation.stage import opened

DAYS = int(os.environ.get("WHISPERER_SIMULATION_DAYS", "3"))
EXCHANGES_A_DAY = int(os.environ.get("WHISPERER_SIMULATION_EXCHANGES", "20"))
IS_WHOLE = DAYS > month.KEPT_DAYS

_BYTES_FOR_A_KEPT_EXCHANGE = 6_000
_BYTES_FOR_A_PRUNED_EXCHANGE = 1_700
_BYTES_AT_FIRST = 1_000_000
_MOST_GROWTH_OF_MEMORY = 1.1


def lived(*, days: int, exchanges_a_day: int, kept_days: int) -> tuple[Month, Provider, Any]:
    """A month from outside, what its models were asked, and what there is more of at its end than once pruned."""
    disk, provider = SimulatedDisk(), Provider()
    found: list[Any] = []
    lived: list[Month] = []

    async def main() -> None:
        store = disk.open()
        async with opened(store, provider.answer, tools=[read_page]) as manager:
            life = Month(manager, exchanges_a_day=exchanges_a_day, kept_days=kept_days)
            lived.append(life)
            await life.prepare()
            for number in range(days):
                print(await life.day())
                if number in (kept_days, days - 1):
                    found.append(residue_of(manager))
        await store.close()

    simulate(main())
    disk.close()
    before, after = found[0], found[-1]
    return lived[0], provider, {name: (before[name], after[name]) for name in after if after[name] > before[name]}


@pytest.fixture(scope="module")
def whole() -> tuple[Month, Provider, Any]:
    kept_days = month.KEPT_DAYS if IS_WHOLE else 1
    return lived(days=DAYS, exchanges_a_day=EXCHANGES_A_DAY, kept_days=kept_days)


def test_no_task_is_lost_to_its_context(whole: tuple[Month, Provider, Any]) -> None:
    life, provider, _ = whole
    print(
        f"{life.exchanges:,} exchanges, {provider.requests:,} requests, {provider.summaries:,} summaries, "
        f"{provider.refused:,} refused as too long, {sum(life.lost.values())} tasks lost"
    )
    assert life.exchanges == DAYS * EXCHANGES_A_DAY * len(month.AGENTS)
    assert life.lost == {}
    assert provider.summaries > DAYS * len(month.AGENTS) // 2, "hardly any conversation was long enough"
    assert provider.refused, "no model was hungrier than the runtime thought"


def test_what_is_kept_stays_within_a_bound(whole: tuple[Month, Provider, Any]) -> None:
    life, _, _ = whole
    for night in life.nights:
        print(f"day {night.day}: {night.pruned_bytes:,} bytes, at most {bound(life, night.day):,}")
        assert night.pruned_bytes <= bound(life, night.day)
    assert life.nights[-1].pruned_bytes < life.nights[-1].stored_bytes, "nothing was pruned"


def bound(life: Month, day: int) -> int:
    """How large the database may be: exchanges of the days that are kept, and what stays of all the others."""
    kept = min(day, life.kept_days) * life.exchanges_a_day
    before = max(day - life.kept_days, 0) * life.exchanges_a_day
    whole = kept + before / month.STANDING_EVERY
    size = whole * _BYTES_FOR_A_KEPT_EXCHANGE + before * _BYTES_FOR_A_PRUNED_EXCHANGE
    return int(_BYTES_AT_FIRST + len(month.AGENTS) * size)


def test_memory_is_as_it_was_when_things_were_first_pruned(whole: tuple[Month, Provider, Any]) -> None:
    life, _, more = whole
    assert more.pop("Trees._sizes", (0, 0))[1] <= 1_000, "the sizes of more trees are kept than are said to be"
    assert more == {}
    first, last = life.nights[life.kept_days].resident_bytes, life.nights[-1].resident_bytes
    print(f"resident when things were first pruned {first:,} bytes, at the end {last:,}")
    assert last <= first * _MOST_GROWTH_OF_MEMORY


@pytest.mark.planted("a month of one agent", name="never make a conversation shorter")
def test_a_task_that_is_lost_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(month.CONTEXT, "compact", "off")
    life, _, _ = lived(days=1, exchanges_a_day=20, kept_days=1)
    assert set(life.lost) == {"model_too_long"}


@pytest.mark.planted("a month of one agent", name="prune nothing")
def test_what_is_never_pruned_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep_all(_: Month) -> None:
        """Nothing goes."""

    monkeypatch.setattr(Month, "prune", keep_all)
    life, _, _ = lived(days=3, exchanges_a_day=20, kept_days=1)
    assert life.nights[-1].pruned_bytes > bound(life, 3)
