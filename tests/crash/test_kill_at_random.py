"""The process is killed at any moment, several times in one run.

`WHISPERER_CRASH_RUNS` is the number of kills, `WHISPERER_CRASH_SEED` what their moments are drawn from.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from .harness import Campaign, Witness

KILLS = int(os.environ.get("WHISPERER_CRASH_RUNS", "30"))
SEED = int(os.environ.get("WHISPERER_CRASH_SEED", "1"))
LONGEST_LIFE_SECONDS = 0.2
MOST_KILLS_IN_A_RUN = 6


def test_kills_at_random_lose_nothing_and_repeat_nothing(
    witness: Witness, tmp_path: Path, report: Callable[[str], None]
) -> None:
    chance = random.Random(SEED)
    campaign = Campaign(witness, tmp_path / "random")

    def plans() -> Iterator[list[float]]:
        while campaign.deaths < KILLS:
            kills = chance.randint(1, MOST_KILLS_IN_A_RUN)
            yield [chance.uniform(0.0, LONGEST_LIFE_SECONDS) for _ in range(kills)]

    asyncio.run(campaign.go(plans()))
    chance_of_failure = f"fewer than {3 / campaign.deaths:.3%} of kills do harm, at 95 %" if campaign.deaths else ""
    report(f"at random: {campaign}, seed {SEED}; {'' if campaign.findings else chance_of_failure}")
    assert not campaign.findings, campaign.told
