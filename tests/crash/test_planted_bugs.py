"""The harness can fail: each planted bug breaks one promise, and some kill must show it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness import Campaign, Run, Witness
from .planted_bugs import PLANTED_BUGS


@pytest.mark.parametrize("name", PLANTED_BUGS)
def test_a_planted_bug_shows_when_the_process_is_killed_and_not_before(
    witness: Witness, tmp_path: Path, report: Callable[[str], None], name: str
) -> None:
    bug = PLANTED_BUGS[name]
    unharmed = Run(witness, tmp_path / f"{name}-unharmed", planted_bug=name)
    asyncio.run(unharmed.finish())
    assert not unharmed.findings, unharmed.told
    assert unharmed.summary is not None

    campaign = Campaign(witness, tmp_path / name, planted_bug=name)
    reached = unharmed.summary.points
    kills = [(number, point) for point in bug.points for number in range(1, reached[point] + 1)]
    asyncio.run(campaign.go([(f"{point}:{number}",) for number, point in sorted(kills)], until=bug.finding))
    shown = [finding for finding in campaign.findings if re.search(bug.finding, finding)]
    report(f"planted bug {name}: {f'found after {campaign.runs} runs' if shown else 'NOT FOUND'}")
    assert shown
