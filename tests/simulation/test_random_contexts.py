"""Random lives with small windows: conversations stay whole and within what models take; planted bugs are caught."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ai_whisperer.core import compacting, shown, view
from ai_whisperer.domain.conversation import ToolTurn, Turn
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.runtime.agents import compaction
from ai_whisperer.store.base import Unit
from tests.planted import Caught, search, searched
from tests.simulation.small_windows import SmallChaos, failure_of

SEEDS = int(os.environ.get("WHISPERER_SIMULATION_SEEDS", "40")) // 4
FIRST = int(os.environ.get("WHISPERER_SIMULATION_FIRST_SEED", "0"))
_SEEDS_FOR_A_PLANTED_BUG = 40
_SHOWS_AT = {"count_mail_as_shown": 34}
"""Where the search for a rare one begins."""


def test_lives_with_small_windows_keep_every_promise() -> None:
    seeds = range(FIRST, FIRST + SEEDS)
    broken = {seed: failure for seed in seeds if (failure := failure_of(seed))}
    print(f"small windows: {len(seeds)} seeds from {seeds.start}, {len(broken)} broken")
    assert broken == {}


def test_conversations_are_made_shorter_in_these_lives() -> None:
    runs = [SmallChaos(seed) for seed in range(3)]
    for run in runs:
        run.run()
    assert sum(run.world.summaries for run in runs) > 5
    assert sum(run.compactions for run in runs) > 1


Plant = Callable[[pytest.MonkeyPatch], None]


def cut_inside_a_group(patch: pytest.MonkeyPatch) -> None:
    """The answer is covered, and the last of its results is not."""
    whole = shown.turns_of

    def in_two(steps: Sequence[StepRecord], *, covered: int = 0, **how: Any) -> list[Turn]:
        before = whole([step for step in steps if step.number <= covered], **how) if covered else []
        return [*(turn for turn in before[-1:] if isinstance(turn, ToolTurn)), *whole(steps, covered=covered, **how)]

    patch.setattr(view, "turns_of", in_two)


def forget_the_card(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compaction, "card", lambda *_, **__: "")


def count_mail_as_shown(patch: pytest.MonkeyPatch) -> None:
    """The last results, which no model was shown yet, become lines too."""
    patch.setattr(compacting, "movable", lambda groups, *_: len(groups))


def forget_that_it_was_compacted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Unit, "put_compacted", lambda *_: None)


@pytest.mark.planted("lives with small windows", unit="seed")
@pytest.mark.parametrize(
    ("plant", "complaint"),
    [
        (cut_inside_a_group, "a result has no call"),
        (forget_the_card, "there is no card behind the summary"),
        (count_mail_as_shown, "a mail counts as read that no model was shown"),
        (forget_that_it_was_compacted, "was shown something else than the journal says"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_planted_bugs_are_caught(plant: Plant, complaint: str, monkeypatch: pytest.MonkeyPatch, caught: Caught) -> None:
    plant(monkeypatch)

    def complaint_of(seed: int) -> str | None:
        failure = failure_of(seed)
        return failure if failure is not None and complaint in failure else None

    assert search(searched(_SEEDS_FOR_A_PLANTED_BUG, shows_at=_SHOWS_AT.get(plant.__name__, 0)), complaint_of, caught)
