"""When schedules are due, and which are refused."""

from __future__ import annotations

import time
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ai_whisperer.core import zones
from ai_whisperer.core.cron import cron_times
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.core.schedules import (
    MAX_BATCH,
    Due,
    check_schedule,
    due_now,
    next_due,
    none_fires,
    resumed_at,
    task_id_of,
)
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition, ScheduleRecord
from ai_whisperer.errors import DefinitionError, InvalidInputError, ScheduleError, TooLargeError

NOW = 1_800_000_000.0
YEAR = 365 * 86_400


def check(*, agent_id: str | None = "alice", **fields: Any) -> None:
    check_schedule(ScheduleDefinition(**fields), agent_id=agent_id, max_prompt_bytes=100)


def every(seconds: float, *, missed: MissedRuns = MissedRuns.ONCE, next_at: float | None = None) -> ScheduleRecord:
    definition = ScheduleDefinition(interval_seconds=seconds, prompt="go", missed=missed)
    return ScheduleRecord(
        session_id="s",
        id="x",
        definition=definition,
        agent_id="alice",
        next_at=NOW + seconds if next_at is None else next_at,
        created_at=NOW,
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "^cron or interval_seconds: neither is given"),
        ({"cron": "* * * * *", "interval_seconds": 5.0}, "^cron or interval_seconds: both are given"),
        ({"cron": None}, "^cron or interval_seconds: neither"),
        ({"cron": "* * * * *", "prompt": None}, "^prompt or event: neither is given"),
        ({"cron": "* * * * *", "event": "e"}, "^prompt or event: both are given"),
        ({"cron": "60 * * * *"}, "the minute field '60' is not valid. Use minutes from 0 to 59"),
        ({"cron": "5,x * * * *"}, "the minute field '5,x' is not valid"),
        ({"cron": "*/0 * * * *"}, r"the minute field '\*/0' is not valid"),
        ({"cron": "* 24 * * *"}, "the hour field '24' is not valid"),
        ({"cron": "* * 32 * *"}, "the day-of-month field '32' is not valid"),
        ({"cron": "* * 0 * *"}, "the day-of-month field '0' is not valid"),
        ({"cron": "* * * 13 *"}, "the month field '13' is not valid"),
        ({"cron": "* * * * 8"}, "the day-of-week field '8' is not valid"),
        ({"cron": "* * * * FRI-MON"}, "the day-of-week field 'FRI-MON' is not valid"),
        ({"cron": "* * * * MON#6"}, "the day-of-week field 'MON#6' is not valid"),
        ({"cron": ""}, "has 0 fields, it needs 5: minute, hour, day-of-month, month, day-of-week"),
        ({"cron": "@daily"}, "has 1 fields"),
        ({"cron": "0 0 9 * * *"}, "has 6 fields"),
        ({"cron": "1" * 5_000 + " * * * *"}, "at most 1,000 are allowed"),
        ({"cron": "1" * 900 + " * * * *"}, "the minute field"),
        ({"cron": "0 0 30 2 *"}, "never comes: no day fits the day-of-month field '30', the month field '2'"),
        ({"cron": "0 0 31 2,4,6,9,11 *"}, "never comes"),
        ({"cron": "0 0 */30 2 5#5"}, "never comes"),
        ({"cron": "* * * * *", "zone": "Europe/Berlim"}, "^zone 'Europe/Berlim' is not known.*mean Europe/Berlin"),
        ({"cron": "* * * * *", "zone": "berlin"}, "mean Europe/Berlin"),
        ({"cron": "* * * * *", "zone": ""}, "^zone '' is not known"),
        ({"cron": "* * * * *", "zone": "Europe"}, "^zone 'Europe' is not known"),
        ({"cron": "* * * * *", "zone": "/etc/localtime"}, "^zone '/etc/localtime' is not known"),
        ({"cron": "* * * * *", "zone": "../../etc/passwd"}, "^zone"),
        ({"cron": "* * * * *", "zone": "zone.tab"}, "^zone"),
        ({"cron": "* * * * *", "zone": "a\0b"}, "^zone"),
        ({"cron": "* * * * *", "zone": "\ud800"}, "^zone"),
        ({"cron": "* * * * *", "zone": "x" * 10_000}, "^zone"),
        ({"interval_seconds": 5.0, "zone": "Mars/Olympus"}, "^zone"),
        ({"interval_seconds": 0.0}, "^interval_seconds must be at least 1 second"),
        ({"interval_seconds": -1.0}, "^interval_seconds"),
        ({"interval_seconds": 0.5}, "^interval_seconds"),
        ({"interval_seconds": 1e10}, "^interval_seconds.*at most 100 years"),
        ({"interval_seconds": float("nan")}, "^interval_seconds"),
        ({"interval_seconds": float("inf")}, "^interval_seconds"),
        ({"interval_seconds": 5.0, "prompt": " "}, "^prompt is empty"),
        ({"interval_seconds": 5.0, "prompt": "\udcff"}, "^prompt: .*lone surrogate"),
        ({"interval_seconds": 5.0, "data": 1}, "^data goes with an event only"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused_with_the_field(fields: dict[str, Any], message: str) -> None:
    began = time.process_time()
    with pytest.raises(ScheduleError, match=message):
        check(**{"prompt": "go"} | fields)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"event": ""}, "^event: .* cannot name an event"),
        ({"event": "*"}, "^event: .* cannot name an event"),
        ({"event": "a\nb"}, "^event: .* cannot name an event"),
        ({"event": "\ud800"}, "^event: .*lone surrogate"),
        ({"event": "e", "data": {1, 2}}, "^data: .* must be JSON"),
        ({"event": "e", "data": float("nan")}, "^data: .* must be JSON"),
        ({"event": "e", "data": {"deep": [float("inf")]}}, "^data: .* must be JSON"),
        ({"event": "e", "data": b"bytes"}, "^data: .* must be JSON"),
        ({"event": "e", "data": "\ud800"}, "^data: .* must be JSON"),
    ],
)
def test_an_event_that_cannot_be_broadcast_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        check(agent_id=None, interval_seconds=5.0, **fields)


def test_data_that_holds_itself_or_is_too_deep_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for data in (circle, deep):
        with pytest.raises(ScheduleError, match=r"^data: .* must be JSON"):
            check(agent_id=None, interval_seconds=5.0, event="e", data=data)


def test_what_is_too_large_is_refused_as_such() -> None:
    with pytest.raises(TooLargeError, match=r"^prompt: .*101 bytes, at most 100"):
        check(interval_seconds=5.0, prompt="x" * 101)
    with pytest.raises(TooLargeError, match=r"^event: .*at most 200"):
        check(interval_seconds=5.0, event="x" * 201)
    with pytest.raises(TooLargeError, match=r"^data: .* has"):
        check(interval_seconds=5.0, event="e", data="x" * 300_000)


def test_a_prompt_needs_an_agent_and_an_event_does_not() -> None:
    with pytest.raises(ScheduleError, match=r"^prompt needs an agent"):
        check(agent_id=None, interval_seconds=5.0, prompt="go")
    check(agent_id=None, interval_seconds=5.0, event="tick", data={"n": [1, None]})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"cron": "x * * * *", "prompt": "go"}, r"schedule\[1\]\.cron .*the minute field 'x'"),
        ({"cron": "0 9 * * *", "zone": "Nowhere", "prompt": "go"}, r"schedule\[1\]\.zone 'Nowhere'"),
        ({"interval_seconds": 0, "prompt": "go"}, r"schedule\[1\]\.interval_seconds"),
        ({"cron": "0 9 * * *", "prompt": "x" * 51}, r"schedule\[1\]\.prompt: .*at most 50"),
        ({"cron": 5, "prompt": "go"}, r"`schedule\[1\]\.cron`"),
        ({"cron": "0 9 * * *", "prompt": "go", "missed": "never"}, r"`schedule\[1\]\.missed`"),
        ({"crom": "0 9 * * *", "prompt": "go"}, r"`schedule\[1\]\.crom`"),
    ],
)
def test_a_definition_with_a_bad_schedule_is_refused_with_its_place(entry: dict[str, Any], message: str) -> None:
    good = {"cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin", "prompt": "good morning"}
    with pytest.raises(DefinitionError, match=message):
        definition_from({"limits": {"max_prompt_bytes": 50}, "schedule": [good, entry]})
    assert definition_from({"schedule": [good]}).schedule[0].zone == "Europe/Berlin"


@given(st.text(max_size=40) | st.from_regex(r"\A[*0-9A-Z/,#\-]{1,6}( [*0-9LWMON/,#\-]{1,6}){4}\Z"))
def test_any_text_is_a_cron_expression_that_comes_or_is_refused(text: str) -> None:
    try:
        check(cron=text, prompt="go")
    except ScheduleError:
        return
    first = next_due(ScheduleDefinition(cron=text), NOW, NOW)
    assert first is None or first > NOW


@given(st.text(max_size=40))
def test_any_text_is_a_zone_or_is_refused(text: str) -> None:
    assert zones.is_zone(text) in (True, False)


def test_utc_needs_no_time_zone_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    check(cron="0 9 * * *", prompt="go")
    assert next_due(ScheduleDefinition(cron="0 9 * * *"), NOW, NOW) == NOW + 3600
    assert not zones.is_zone("Europe/Paris")


def test_a_daily_time_comes_once_on_each_date_in_every_zone_there_is() -> None:
    first, last = date(2027, 1, 2), date(2027, 12, 30)
    dates = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    for zone in sorted(available_timezones()):
        found: list[date] = []
        at = cron_times("30 2 * * *", zone).next(datetime(2026, 12, 31, tzinfo=UTC).timestamp())
        while at is not None and (on := datetime.fromtimestamp(at, ZoneInfo(zone))).date() <= last:
            if on.date() >= first:
                found.append(on.date())
            at = cron_times("30 2 * * *", zone).next(at)
        assert found == dates, zone


def test_a_day_that_a_zone_left_out_is_made_up_for_when_it_is_over() -> None:
    apia = ZoneInfo("Pacific/Apia")  # had no 30 December 2011
    before = datetime(2011, 12, 29, 13, tzinfo=apia).timestamp()
    at = cron_times("0 12 * * *", "Pacific/Apia").next(before)
    assert at == datetime(2011, 12, 31, 0, 0, tzinfo=apia).timestamp()
    assert cron_times("0 12 * * *", "Pacific/Apia").next(at) == datetime(2011, 12, 31, 12, tzinfo=apia).timestamp()


@given(
    st.floats(min_value=1.0, max_value=1e8),
    st.floats(min_value=0, max_value=2e9),
    st.floats(min_value=-1e9, max_value=4e9),
)
def test_intervals_are_counted_from_the_anchor_and_do_not_drift(seconds: float, anchor: float, after: float) -> None:
    definition = ScheduleDefinition(interval_seconds=seconds)
    first = next_due(definition, after, anchor)
    assert first is not None
    assert first > after
    assert first >= anchor + seconds
    number = round((first - anchor) / seconds)
    assert first == anchor + number * seconds
    assert number == 1 or anchor + (number - 1) * seconds <= after
    second = next_due(definition, first, anchor)
    assert second == anchor + (number + 1) * seconds


def test_what_is_not_due_yet_changes_nothing() -> None:
    record = every(60)
    assert due_now(record, NOW + 59.9) == Due(instants=(), missed=0, next_at=NOW + 60)
    assert none_fires(record, NOW + 59.9) == Due(instants=(), missed=0, next_at=NOW + 60)
    ended = replace(record, next_at=None)
    assert due_now(ended, NOW + 1e9) == Due(instants=(), missed=0, next_at=None)


@pytest.mark.parametrize("policy", list(MissedRuns))
def test_an_instant_up_to_a_minute_back_is_not_missed(policy: MissedRuns) -> None:
    record = every(1000, missed=policy)
    assert due_now(record, NOW + 1060) == Due(instants=(NOW + 1000,), missed=0, next_at=NOW + 2000)


@pytest.mark.parametrize(
    ("policy", "instants", "missed"),
    [
        (MissedRuns.SKIP, [400], 3),
        (MissedRuns.ONCE, [300, 400], 2),
        (MissedRuns.ALL, [100, 200, 300, 400], 0),
    ],
)
def test_the_policy_says_what_becomes_of_missed_instants(policy: MissedRuns, instants: list[int], missed: int) -> None:
    due = due_now(every(100, missed=policy), NOW + 420)
    assert due == Due(instants=tuple(NOW + each for each in instants), missed=missed, next_at=NOW + 500)


def test_what_may_not_fire_is_missed_whatever_the_policy() -> None:
    due = none_fires(every(100, missed=MissedRuns.ALL), NOW + 420)
    assert due == Due(instants=(), missed=4, next_at=NOW + 500)


def test_a_clock_that_is_set_back_fires_nothing_again() -> None:
    record = every(100)
    due = due_now(record, NOW + 100)
    record = replace(record, next_at=due.next_at, last_at=due.instants[-1])
    assert due_now(record, NOW - 5_000).instants == ()
    assert due_now(record, NOW + 150) == Due(instants=(), missed=0, next_at=NOW + 200)
    assert resumed_at(record, NOW - 5_000) == NOW + 200


def test_a_resumed_schedule_goes_on_with_the_first_instant_from_now() -> None:
    assert resumed_at(every(100), NOW + 950) == NOW + 1000


def test_all_missed_instants_come_in_batches_and_none_is_lost() -> None:
    record = every(1, missed=MissedRuns.ALL)
    fired: list[float] = []
    while (due := due_now(record, NOW + 3500)).instants:
        assert len(due.instants) <= MAX_BATCH
        fired.extend(due.instants)
        record = replace(record, next_at=due.next_at)
    assert fired == [NOW + number for number in range(1, 3501)]


@pytest.mark.parametrize("policy", [MissedRuns.SKIP, MissedRuns.ONCE])
def test_a_gap_of_decades_takes_a_moment(policy: MissedRuns) -> None:
    began = time.process_time()
    due = due_now(every(1, missed=policy), NOW + 30 * YEAR)
    assert due.missed + len(due.instants) == 30 * YEAR
    assert len(due.instants) <= 62
    definition = ScheduleDefinition(cron="* * * * *", zone="Europe/Berlin", missed=policy)
    minutely = replace(every(60), definition=definition)
    due = due_now(minutely, NOW + 30 * YEAR)
    assert due.missed + len(due.instants) == 30 * YEAR // 60
    assert due.next_at == NOW + 30 * YEAR + 60
    assert time.process_time() - began < 2


def test_an_instant_that_its_zone_no_longer_has_still_counts_once() -> None:
    definition = ScheduleDefinition(cron="0 0 * * *", missed=MissedRuns.ALL)
    record = replace(every(60), definition=definition, next_at=NOW + 7)
    midnight = NOW + 16 * 3600 - NOW % 86_400 + 8 * 3600
    assert due_now(record, NOW + 8).instants == (NOW + 7,)
    assert due_now(record, NOW + 8).next_at == midnight
    assert none_fires(record, NOW + 8).missed == 1
    assert none_fires(record, midnight).missed == 2


def test_a_schedule_whose_zone_is_not_known_here_says_so() -> None:
    definition = ScheduleDefinition(cron="0 0 * * *", zone="Europe/Atlantis")
    with pytest.raises(InvalidInputError, match="zone 'Europe/Atlantis'"):
        due_now(replace(every(60), definition=definition), NOW + 1e6)


def test_tasks_of_different_instants_and_of_namesakes_have_different_ids() -> None:
    record = every(1)
    later = replace(record, created_at=NOW + 1)
    ids = [task_id_of(each, NOW + number) for each in (record, later) for number in range(100)]
    assert len(set(ids)) == 200
    assert all("~" in each for each in ids)
