"""The process is killed at named points: around what reaches outside, when a timer fires, while the store is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.effort import spread

from .harness import Campaign, Witness

POINTS = {
    "tool.acting": "before the effect of a tool",
    "tool.sent": "while the effect of a tool is under way",
    "tool.acted": "after the effect of a tool, before its result is journaled",
    "model.asking": "before a model is asked",
    "model.streaming": "in the middle of an answer",
    "model.answered": "after an answer, before it is journaled",
    "timer.before": "when a timer is due",
    "timer.decided": "when a timer has fired, before that is durable",
    "store.opening": "before the database is one",
    "store.creating": "while the tables are made",
    "store.created": "when the tables were just made",
    "recovery.before": "before an empty session is taken up",
    "recovery.decided": "when an empty session was taken up",
}


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_named_point_loses_nothing_and_repeats_nothing(
    witness: Witness, points: Mapping[str, int], tmp_path: Path, report: Callable[[str], None], point: str
) -> None:
    campaign = Campaign(witness, tmp_path / point.replace(".", "-"))
    asyncio.run(campaign.go([(f"{point}:{number}",) for number in spread(points[point], usual=3)]))
    report(f"{POINTS[point]}: {campaign}")
    assert not campaign.findings, campaign.told
    assert campaign.deaths


def test_every_point_of_a_run_is_a_point_to_be_killed_at(points: Mapping[str, int]) -> None:
    assert set(points) == {*POINTS, "commit.before", "commit.after", "commit.told"}
