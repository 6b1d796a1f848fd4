"""The process is killed while it keeps its session in PostgreSQL: around commits, while one is under way, at random.

`WHISPERER_CRASH_RUNS` is 25 times the number of kills at random, `WHISPERER_CRASH_SEED` what they are drawn from.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.planted import Caught
from tests.postgresql import Server

from .harness import Campaign, Death, Witness
from .test_kill_at_random import LONGEST_LIFE_SECONDS, SEED

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

KILLS = max(int(os.environ.get("WHISPERER_CRASH_RUNS", "30")) // 25, 3)
MOST_KILLS_IN_A_RUN = 3
AROUND = [
    *(f"commit.sent:{number}" for number in (1, 8, 20)),
    "commit.before:6",
    "commit.after:12",
    "commit.told:16",
]


@contextmanager
def databases(server: Server, count: int) -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(server.database()) for _ in range(count)]


def test_kills_around_commits_in_postgresql_lose_nothing_and_repeat_nothing(
    witness: Witness, postgresql_server: Server, tmp_path: Path, report: Callable[[str], None]
) -> None:
    plans: list[list[Death]] = [[AROUND[0], AROUND[3]], [AROUND[1], AROUND[4]], [AROUND[2], AROUND[5]]]
    with databases(postgresql_server, len(plans)) as addresses:
        campaign = Campaign(witness, tmp_path / "around", addresses=addresses)
        asyncio.run(campaign.go(plans))
    report(f"PostgreSQL, around commits: {campaign}")
    assert campaign.deaths > len(plans), "hardly anything was killed"
    assert not campaign.findings, campaign.told


def test_kills_at_random_in_postgresql_lose_nothing_and_repeat_nothing(
    witness: Witness, postgresql_server: Server, tmp_path: Path, report: Callable[[str], None]
) -> None:
    chance = random.Random(SEED)
    plans: list[list[Death]] = []
    while sum(map(len, plans)) < KILLS:
        kills = chance.randint(1, MOST_KILLS_IN_A_RUN)
        plans.append([chance.uniform(0.0, 3 * LONGEST_LIFE_SECONDS) for _ in range(kills)])
    with databases(postgresql_server, len(plans)) as addresses:
        campaign = Campaign(witness, tmp_path / "random", addresses=addresses)
        asyncio.run(campaign.go(plans))
    report(f"PostgreSQL, at random: {campaign}, seed {SEED}")
    assert not campaign.findings, campaign.told


@pytest.mark.planted("kill -9 with PostgreSQL", unit="kill", name="acknowledge before the commit")
def test_what_is_acknowledged_before_its_commit_is_found_missing(
    witness: Witness, postgresql_server: Server, tmp_path: Path, caught: Caught
) -> None:
    bug, plans = "acknowledge-before-commit", [[f"commit.before:{number}"] for number in (2, 4, 6)]
    with databases(postgresql_server, len(plans)) as addresses:
        campaign = Campaign(witness, tmp_path / "planted", planted_bug=bug, addresses=addresses)
        asyncio.run(campaign.go(plans, until="acknowledged and is lost"))
    lost = [each for each in campaign.findings if "acknowledged and is lost" in each]
    assert lost, campaign.told
    caught(lost[0], after=campaign.runs)
