"""The harness can fail: each planted bug breaks one promise, and some kill must show it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.planted import Caught

from .harness import Campaign, Run, Witness
from .planted_bugs import PLANTED_BUGS, PlantedBug


def kills_of(bug: PlantedBug, points: Mapping[str, int]) -> list[tuple[str]]:
    """The kills at the points of the bug, in the order in which a run comes to them."""
    each = [(number, point) for point in bug.points for number in range(1, points.get(point, 0) + 1)]
    return [(point,) for point in bug.points if ":" in point] + [
        (f"{point}:{number}",) for number, point in sorted(each)
    ]


@pytest.mark.planted("kill -9", unit="kill")
@pytest.mark.parametrize("name", PLANTED_BUGS)
def test_a_planted_bug_shows_when_the_process_is_killed_and_not_before(
    witness: Witness, tmp_path: Path, report: Callable[[str], None], name: str, caught: Caught
) -> None:
    bug = PLANTED_BUGS[name]
    unharmed = Run(witness, tmp_path / f"{name}-unharmed", planted_bug=name)
    asyncio.run(unharmed.finish())
    assert not unharmed.findings, unharmed.told
    assert unharmed.summary is not None

    campaign = Campaign(witness, tmp_path / name, planted_bug=name)
    asyncio.run(campaign.go(kills_of(bug, unharmed.summary.points), until=bug.finding))
    shown = [finding for finding in campaign.findings if re.search(bug.finding, finding)]
    report(f"planted bug {name}: {f'found after {campaign.runs} runs' if shown else 'NOT FOUND'}")
    assert shown
    caught(shown[0], after=campaign.runs)
