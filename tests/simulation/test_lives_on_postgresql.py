"""Random lives with random deaths keep every promise on a real PostgreSQL too.

`WHISPERER_TEST_POSTGRESQL_LIVES` is how many seeds are played, `WHISPERER_TEST_POSTGRESQL_LIVES_SEED` the first.
"""

from __future__ import annotations

import os

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from tests.planted import Caught, search, searched
from tests.postgresql import Server
from tests.simulation.chaos import failure_in
from tests.simulation.plants import acknowledge_before_the_commit
from tests.simulation.postgresql_lives import PostgresqlLives

RUNS = int(os.environ.get("WHISPERER_TEST_POSTGRESQL_LIVES", "2"))
FIRST_SEED = int(os.environ.get("WHISPERER_TEST_POSTGRESQL_LIVES_SEED", "0"))
_SEEDS_FOR_A_PLANTED_BUG = 20


def failure_of(seed: int, server: Server) -> str | None:
    with server.database() as address:
        return failure_in(PostgresqlLives(seed, address).run)


def test_random_lives_keep_every_promise(postgresql_server: Server) -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + RUNS)
    broken = {seed: failure for seed in seeds if (failure := failure_of(seed, postgresql_server))}
    print(f"lives on PostgreSQL: {len(seeds)} seeds from {seeds.start}, {len(broken)} broken")
    assert broken == {}


@pytest.mark.planted("random lives on PostgreSQL", unit="seed", name="acknowledge before the commit")
def test_an_acknowledgement_before_the_commit_is_caught(
    postgresql_server: Server, monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    acknowledge_before_the_commit(monkeypatch)
    seeds = searched(_SEEDS_FOR_A_PLANTED_BUG, shows_at=6)
    found = search(seeds, lambda seed: failure_of(seed, postgresql_server), caught)
    assert found, f"it was not caught up to seed {_SEEDS_FOR_A_PLANTED_BUG}"
