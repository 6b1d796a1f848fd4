"""Random lives with pruning at random times keep every promise, and planted bugs are caught."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer.core import retention as rules
from ai_whisperer.domain.retention import Erased, Horizon
from ai_whisperer.runtime.api import retention
from ai_whisperer.runtime.api.accepting import Intake
from ai_whisperer.store.base import Unit
from ai_whisperer.store.operations import RowOperation, Verb
from ai_whisperer.store.retention import StoreRetention
from ai_whisperer.store.sqlite import retention_queries
from ai_whisperer.store.tables import TASK
from tests.planted import Caught, search, searched
from tests.simulation.pruned_lives import PrunedLives, failure_of

SEEDS = int(os.environ.get("WHISPERER_SIMULATION_SEEDS", "40")) // 4
FIRST = int(os.environ.get("WHISPERER_SIMULATION_FIRST_SEED", "0"))
_SEEDS_FOR_A_PLANTED_BUG = 60


def test_random_lives_with_pruning_keep_every_promise() -> None:
    broken = {seed: failure for seed in range(FIRST, FIRST + SEEDS) if (failure := failure_of(seed))}
    print(f"pruned lives: {SEEDS} seeds from {FIRST}, {len(broken)} broken")
    assert broken == {}


def test_something_is_pruned_in_these_lives() -> None:
    run = PrunedLives(1)
    run.run()
    assert run.pruned > 5
    assert len(run.heard) > 100


_ERASE_USAGE = RowOperation(Verb.UPDATE, TASK, "usage")

Plant = Callable[[pytest.MonkeyPatch], None]


def give_numbers_again(patch: pytest.MonkeyPatch) -> None:
    erase = StoreRetention._erase_before

    async def all_of_the_log(self: StoreRetention, horizon: Horizon) -> Erased:
        erased = await erase(self, horizon)
        unit = Unit()
        unit.delete_notifications(horizon.session_id, below=1 << 60, limit=-1)
        await self._groups.submit(unit)
        return erased

    patch.setattr(StoreRetention, "_erase_before", all_of_the_log)


def prune_open_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retention, "may_erase_thread", lambda thread, **_: not thread.is_erased)
    whatever = retention_queries.TASKS_LEFT_OF_THREAD.replace("AND state NOT IN ('queued', 'running')", "")
    patch.setattr(retention_queries, "TASKS_LEFT_OF_THREAD", whatever)


def prune_dead_letters(patch: pytest.MonkeyPatch) -> None:
    may = rules.may_erase_thread
    patch.setattr(
        retention, "may_erase_thread", lambda thread, **given: may(replace(thread, has_dead_letter=False), **given)
    )


def forget_what_was_done(patch: pytest.MonkeyPatch) -> None:
    known = Intake.known_task

    async def without_the_erased(self: Intake, given_id: str | None) -> Any:
        found = await known(self, given_id)
        return None if found is not None and found.erased_at is not None else found

    patch.setattr(Intake, "known_task", without_the_erased)


def forget_what_was_used(patch: pytest.MonkeyPatch) -> None:
    erase = Unit.erase_task

    def with_its_usage(self: Unit, session_id: str, task_id: str, *, at: float) -> None:
        erase(self, session_id, task_id, at=at)
        self.changes.append((_ERASE_USAGE, ("{}", session_id, task_id)))

    patch.setattr(Unit, "erase_task", with_its_usage)


@pytest.mark.planted("lives with pruning", unit="seed")
@pytest.mark.parametrize(
    "plant",
    [
        give_numbers_again,
        prune_open_work,
        prune_dead_letters,
        forget_what_was_done,
        forget_what_was_used,
    ],
)
def test_planted_bugs_are_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    plant(monkeypatch)
    assert search(searched(_SEEDS_FOR_A_PLANTED_BUG), failure_of, caught), "the harness does not see it"
