"""Cron fires exactly once per due instant: zones, expressions and two years against an oracle."""

from __future__ import annotations

import random
from bisect import bisect_right
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from cronsim import CronSim

from ai_whisperer.core.cron import cron_times
from ai_whisperer.core.schedules import due_now, next_due
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition, ScheduleRecord
from tests.unit.cron_oracle import Wall, due_instants

ZONES = [
    ("UTC", 2027),
    ("Europe/Berlin", 2027),
    ("America/New_York", 2027),
    ("Australia/Lord_Howe", 2027),  # shifts by half an hour
    ("Africa/Casablanca", 2027),  # winter time for the month of Ramadan
    ("Asia/Kolkata", 2027),  # half an hour off, never shifts
    ("America/Sao_Paulo", 2017),  # went forward at midnight and back into the day before
    ("America/Havana", 2027),  # goes forward at midnight, and back at one to midnight
]

EXPRESSIONS = [
    "0 9 * * MON-FRI",
    "30 2 * * *",
    "0 2 * * *",
    "0,15,30,45 1,2,3 * * *",
    "0 0 * * *",
    "5 0 * * *",
    "59 23 * * *",
    "30 0-23/3 * * *",
    "0-59/20 0-23 * * SUN",
    "*/30 * * * *",
    "45 * * * *",
    "*/10 3 * * *",
    "*/7 0,1,2 * * 0,6",
    "0 */2 * * *",
    "* 0-4 * 3,4,10,11 SUN",
    "0 12 1,15 * FRI",
    "30 1 L * *",
    "0 8 LW * *",
    "15 2 29 2 *",
    "0 0 * * 7#1,5L",
]


class Years:
    """Two years in a zone, and when each expression is due in them."""

    def __init__(self, zone: str, first_year: int) -> None:
        self.zone = zone
        self.wall = Wall(zone, first_year)
        self.start, self.end = self.wall.start, self.wall.end
        self.due = {expression: due_instants(expression, self.wall) for expression in EXPRESSIONS}


@pytest.fixture(scope="module", params=ZONES, ids=lambda zone: str(zone[0]))
def years(request: pytest.FixtureRequest) -> Years:
    return Years(*request.param)


def schedule(expression: str, zone: str, *, start: float, missed: MissedRuns) -> ScheduleRecord:
    definition = ScheduleDefinition(cron=expression, zone=zone, prompt="go", missed=missed)
    return ScheduleRecord(
        session_id="s",
        id="x",
        definition=definition,
        agent_id="alice",
        next_at=next_due(definition, start - 1, start),
        created_at=start,
    )


def drive(record: ScheduleRecord, end: float, chance: random.Random) -> tuple[list[float], int]:
    """What fires and how much is missed when time passes with restarts, downtime, and clocks that are set."""
    fired: list[float] = []
    missed = 0
    now = record.created_at
    while record.next_at is not None and record.next_at < end:
        happens = chance.random()
        if happens < 0.03:
            now -= chance.uniform(0, 90_000)  # the clock is set back
        elif happens < 0.06:
            now += chance.uniform(0, 300_000)  # the clock is set forward, or the process was down
        else:
            now = max(now, record.next_at) + chance.choice([0.0, 0.2, 59.0, 61.0, 5_000.0])
        due = due_now(record, min(now, end - 1))
        fired.extend(due.instants)
        missed += due.missed
        record = msgspec.structs.replace(record, next_at=due.next_at)
        if chance.random() < 0.1:
            record = msgspec.json.decode(msgspec.json.encode(record), type=ScheduleRecord)  # a restart
    return fired, missed


def test_the_instants_of_two_years_are_those_of_the_oracle(years: Years) -> None:
    for expression, instants in years.due.items():
        times = cron_times(expression, years.zone)
        found: list[float] = []
        following = times.next(years.start - 1)
        while following is not None and following < years.end:
            found.append(following)
            following = times.next(following)
        assert found == instants, expression


def test_none_is_missed_and_none_doubled_over_restarts_downtime_and_clock_jumps(years: Years) -> None:
    for number, (expression, instants) in enumerate(years.due.items()):
        record = schedule(expression, years.zone, start=years.start, missed=MissedRuns.ALL)
        fired, missed = drive(record, years.end, random.Random(number))
        assert (fired, missed) == (instants, 0), expression


def test_every_instant_fires_once_or_is_counted_as_missed_once(years: Years) -> None:
    for number, (expression, instants) in enumerate(years.due.items()):
        policy = (MissedRuns.SKIP, MissedRuns.ONCE)[number % 2]
        record = schedule(expression, years.zone, start=years.start, missed=policy)
        fired, missed = drive(record, years.end, random.Random(number))
        assert fired == sorted(set(fired))
        assert set(fired) <= set(instants)
        assert len(fired) + missed == len(instants), expression


def test_counting_and_looking_back_agree_with_the_oracle_from_any_time(years: Years) -> None:
    chance = random.Random(5)
    near = [at + by for at in years.wall.changes for by in (-1800, -60, -1, 0, 1, 60, 1799, 1800, 3600, 7200)]
    for expression, instants in years.due.items():
        times = cron_times(expression, years.zone)
        for _ in range(60):
            low, high = sorted(chance.choice([chance.uniform(years.start, years.end), *near]) for _ in range(2))
            first, last = bisect_right(instants, low), bisect_right(instants, high)
            assert times.count(low, high) == last - first, (expression, low, high)
            if last:
                assert times.last(high) == instants[last - 1], (expression, high)


def test_where_clocks_shift_by_whole_hours_the_instants_are_those_of_cronsim(years: Years) -> None:
    if years.zone == "Australia/Lord_Howe":
        pytest.skip("cronsim passes over instants where clocks shift by half an hour")
    for expression, instants in years.due.items():
        for change in years.wall.changes:
            first, last = bisect_right(instants, change - 86_400), bisect_right(instants, change + 86_400)
            walk = CronSim(expression, datetime.fromtimestamp(change - 86_400, ZoneInfo(years.zone)))
            assert [next(walk).timestamp() for _ in range(first, last)] == instants[first:last], expression
