"""The process is killed around commits (in long runs around each): before it, before anyone is told, and after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.effort import spread

from .harness import Campaign, Run, Witness


@pytest.mark.parametrize("moment", ["before", "after", "told"])
def test_a_kill_around_any_commit_loses_nothing_and_repeats_nothing(
    witness: Witness, points: Mapping[str, int], tmp_path: Path, report: Callable[[str], None], moment: str
) -> None:
    point = f"commit.{moment}"
    campaign = Campaign(witness, tmp_path / moment)
    asyncio.run(campaign.go([(f"{point}:{number}",) for number in spread(points[point], usual=12)]))
    report(f"{point}: {campaign}")
    assert not campaign.findings, campaign.told


def test_a_kill_while_the_session_is_taken_up_again_is_survived_too(
    witness: Witness, points: Mapping[str, int], tmp_path: Path, report: Callable[[str], None]
) -> None:
    first = [f"commit.after:{number}" for number in spread(points["commit.after"], usual=3, first=4)]
    second = ["recovery.before:1", "recovery.decided:1", "commit.before:1", "commit.after:1", "commit.told:1"]
    campaign = Campaign(witness, tmp_path / "recovery")
    asyncio.run(campaign.go([(before, again) for before in first for again in second]))
    report(f"while recovering: {campaign}")
    assert not campaign.findings, campaign.told


def test_a_kill_around_any_commit_while_a_conversation_is_made_shorter_is_survived(
    witness: Witness, tmp_path: Path, report: Callable[[str], None]
) -> None:
    unharmed = Run(witness, tmp_path / "unharmed-talk", workload="long_talk")
    asyncio.run(unharmed.finish())
    assert not unharmed.findings, unharmed.told
    assert unharmed.summary is not None
    assert unharmed.compactions > 1
    campaign = Campaign(witness, tmp_path / "talk", workload="long_talk")
    points = [f"commit.{moment}" for moment in ("before", "after", "told")]
    deaths = [
        (f"{point}:{number}",)
        for point in points
        for number in spread(unharmed.summary.points[point], usual=8, first=10)
    ]
    asyncio.run(campaign.go(deaths))
    report(f"while a conversation is made shorter: {campaign}")
    assert not campaign.findings, campaign.told


def test_a_kill_in_the_middle_of_work_with_the_real_provider_client_is_survived(
    witness: Witness, tmp_path: Path, report: Callable[[str], None]
) -> None:
    campaign = Campaign(witness, tmp_path / "provider", provider=True)
    asyncio.run(campaign.go([("commit.before:9",), ("commit.after:14",), ("tool.sent:3",)]))
    report(f"real provider client: {campaign}")
    assert not campaign.findings, campaign.told
