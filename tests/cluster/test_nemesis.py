"""Whatever happens to nodes, their ways and their database: nothing is lost, nothing is done twice, clients see it all.

`WHISPERER_TEST_NEMESIS_RUNS` is how many schedules are played, `WHISPERER_TEST_NEMESIS_SEED` the first of them. A
schedule that finds something is played again by `python -m tests.cluster.nemesis SEED`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from tests.cluster.nemesis import Database, a_database, play_all, played
from tests.cluster.planted_bugs import PLANTED_BUGS
from tests.cluster.schedule import Act, Kind, Schedule, drawn
from tests.effort import EFFORT
from tests.planted import IS_WHOLE_SEARCH, Caught
from tests.postgresql import NoPostgresqlError

RUNS = int(os.environ.get("WHISPERER_TEST_NEMESIS_RUNS", "1"))
FIRST_SEED = int(os.environ.get("WHISPERER_TEST_NEMESIS_SEED", "1"))
_PATIENCE_FOR_A_PLANTED_BUG_SECONDS = 12.0
_TRIES_FOR_A_PLANTED_BUG = 12 if IS_WHOLE_SEARCH else 3
_IN_LONG_RUNS = "its schedule takes long and depends on the load of the machine: the long run plays it (make soak)"


@pytest.fixture(scope="module")
def nemesis_database() -> Iterator[Database]:
    """A PostgreSQL of these tests: others do not want theirs to be restarted."""
    try:
        with a_database() as found:
            yield found
    except NoPostgresqlError as error:
        pytest.skip(str(error))


def test_random_faults_lose_nothing_and_repeat_nothing(nemesis_database: Database) -> None:
    assert not play_all(list(range(FIRST_SEED, FIRST_SEED + RUNS)), nemesis_database, tell=print)


@pytest.mark.planted("faults of nodes", unit="schedule")
@pytest.mark.skipif(EFFORT == 1 and not IS_WHOLE_SEARCH, reason=_IN_LONG_RUNS)
@pytest.mark.parametrize("name", [name for name, bug in PLANTED_BUGS.items() if bug.finding])
def test_a_planted_bug_is_found(nemesis_database: Database, name: str, caught: Caught) -> None:
    bug = PLANTED_BUGS[name]
    last: object = None
    if not nemesis_database.server.is_ours and any(not act.node for act in bug.schedule.acts):
        pytest.skip("the server is another's, and is not restarted")
    for tries in range(1, _TRIES_FOR_A_PLANTED_BUG + 1):
        try:
            patience = _PATIENCE_FOR_A_PLANTED_BUG_SECONDS
            last = outcome = played(bug.schedule, nemesis_database, bug=name, patience_seconds=patience)
        except TimeoutError as error:  # a machine that is too busy for it shows nothing
            last = error
            continue
        if found := [each for each in outcome.findings if bug.finding in each]:
            caught(found[0], after=tries)
            return
    pytest.fail(f"not found: {last}")


@pytest.mark.skipif(EFFORT == 1, reason=_IN_LONG_RUNS)
@pytest.mark.parametrize("name", [name for name, bug in PLANTED_BUGS.items() if not bug.finding])
def test_what_is_left_of_a_planted_bug_without_its_harm_is_harmless(nemesis_database: Database, name: str) -> None:
    """What a bug needs beside itself to show does no harm by itself."""
    outcome = played(PLANTED_BUGS[name].schedule, nemesis_database, bug=name)
    assert not outcome.findings, outcome.log


def test_a_schedule_is_the_same_for_a_seed_and_has_all_kinds_of_faults() -> None:
    assert drawn(7) == drawn(7)
    assert {act.kind for seed in range(200) for act in drawn(seed).acts} == set(Kind)
    told = str(Schedule(7, ("a", "b"), (Act(0.5, Kind.DELAY, "a", 2.0, delay_seconds=0.1),)))
    assert told == "seed 7, nodes a, b:\n   0.50 delay a for 2.00 s by 0.10 s"
