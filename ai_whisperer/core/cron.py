"""The instants that a cron expression names in a time zone.

What the five fields mean is cronsim's: names, ranges, lists, steps, `L`, `LW`, `#`, and that a day must fit both day
fields if one of them begins with `*`, else either. What happens when the clocks change follows Debian's cron:

- A **fixed time** (neither the minute nor the hour begins with `*`) comes once for each time that it names. If the
  clocks skip it, it comes at the moment at which they go forward; several that are skipped together come once. If the
  clocks show it twice, it comes the first time.
- Any **other time** (`*` or `*/n` in the minute or the hour) is what the clock on the wall shows. What is skipped does
  not come; what is shown twice comes twice.

cronsim's own walk over the instants is not used: it steps by whole hours of real time and passes over instants in zones
that shift by half an hour (Australia/Lord_Howe).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from ai_whisperer.core.zones import Stretch, stretches_back, stretches_from
from ai_whisperer.errors import ScheduleError

if TYPE_CHECKING:
    from cronsim import CronSim

FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")

_MAX_CHARACTERS = 1_000
_DAY_MINUTES = 1_440
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_ANY_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall time, and only there because cronsim asks for one
_FROM_2000 = 946_684_800.0


@lru_cache(maxsize=2048)
def cron_times(expression: str, zone: str) -> CronTimes:
    """The instants of an expression in a zone that is known; raises `ScheduleError` that names the field."""
    times = CronTimes(_parsed(expression), zone)
    if times.next(_FROM_2000) is None:
        raise ScheduleError(_never(expression))
    return times


class CronTimes:
    """A rising row of instants, as whole UTC seconds."""

    def __init__(self, parsed: CronSim, zone: str) -> None:
        self._zone = zone
        self._parsed = parsed
        self._minutes = sorted(60 * hour + minute for hour in parsed.hours for minute in parsed.minutes)
        self._fixed = not any(field.startswith("*") for field in parsed.parts[1:3])

    def next(self, after: float) -> float | None:
        """The first instant after that time; None if there is none within 50 years."""
        first = math.floor(after) + 1
        for stretch in stretches_from(self._zone, first):
            low = self._first_wall(stretch, max(first, stretch.start))
            wall = self._match_from(low, stretch.end - 1 + stretch.offset)
            if wall is not None:
                return float(max(wall - stretch.offset, stretch.start))
        return None

    def last(self, until: float) -> float | None:
        """The last instant up to that time; None if there is none within 50 years."""
        final = math.floor(until)
        for stretch in stretches_back(self._zone, final):
            low = self._first_wall(stretch, stretch.start)
            wall = self._match_back(low, min(final, stretch.end - 1) + stretch.offset)
            if wall is not None:
                return float(max(wall - stretch.offset, stretch.start))
        return None

    def count(self, after: float, until: float) -> int:
        """How many instants are later than `after` and not later than `until`. Takes a moment even for many years."""
        first, final = math.floor(after) + 1, math.floor(until)
        found = 0
        if first > final:
            return found
        for stretch in stretches_from(self._zone, first):
            if stretch.start > final:
                break
            start = max(first, stretch.start)
            low, high = self._first_wall(stretch, start), min(final, stretch.end - 1) + stretch.offset
            found += self._matches_between(low, high)
            if low < start + stretch.offset:
                found -= max(self._matches_between(low, start + stretch.offset) - 1, 0)
        return found

    def _first_wall(self, stretch: Stretch, start: int) -> int:
        """The wall time from which on matches count, if only instants from `start` on do."""
        if not self._fixed:
            return start + stretch.offset
        return stretch.shown if start == stretch.start else max(start + stretch.offset, stretch.shown)

    def _match_from(self, low: int, high: int) -> int | None:
        """The first wall time from low to high that the fields match."""
        day, minute = divmod(-(-low // 60), _DAY_MINUTES)
        while day * _DAY_MINUTES * 60 <= high:
            if self._on_day(day):
                index = bisect_left(self._minutes, minute)
                if index < len(self._minutes):
                    wall = (day * _DAY_MINUTES + self._minutes[index]) * 60
                    return wall if wall <= high else None
            day, minute = day + 1, 0
        return None

    def _match_back(self, low: int, high: int) -> int | None:
        """The last wall time from low to high that the fields match."""
        day, minute = divmod(high // 60, _DAY_MINUTES)
        while (day + 1) * _DAY_MINUTES * 60 > low:
            if self._on_day(day):
                index = bisect_right(self._minutes, minute)
                if index:
                    wall = (day * _DAY_MINUTES + self._minutes[index - 1]) * 60
                    return wall if wall >= low else None
            day, minute = day - 1, _DAY_MINUTES
        return None

    def _matches_between(self, low: int, high: int) -> int:
        """How many wall times from low to high the fields match."""
        if low > high:
            return 0
        first_day, first_minute = divmod(-(-low // 60), _DAY_MINUTES)
        last_day, last_minute = divmod(high // 60, _DAY_MINUTES)
        found = len(self._minutes) * sum(map(self._on_day, range(first_day, last_day + 1)))
        if self._on_day(first_day):
            found -= bisect_left(self._minutes, first_minute)
        if self._on_day(last_day):
            found -= len(self._minutes) - bisect_right(self._minutes, last_minute)
        return found

    def _on_day(self, day: int) -> bool:
        on = date.fromordinal(_EPOCH_DAY + day)
        return on.month in self._parsed.months and self._parsed.match_day(on)


def _parsed(expression: str) -> CronSim:
    from cronsim import CronSim, CronSimError  # few sessions have schedules

    if len(expression) > _MAX_CHARACTERS:
        raise ScheduleError(f"cron has {len(expression):,} characters, at most {_MAX_CHARACTERS:,} are allowed.")
    texts = expression.split()
    if len(texts) != len(FIELDS):
        raise ScheduleError(
            f"cron '{expression}' has {len(texts)} fields, it needs {len(FIELDS)}: {', '.join(FIELDS)}. "
            "For example, '0 9 * * MON-FRI' is nine o'clock on working days."
        )
    for number, (field, text) in enumerate(zip(FIELDS, texts, strict=True)):
        alone = ["*"] * len(FIELDS)
        alone[number] = text
        try:
            CronSim(" ".join(alone), _ANY_DAY)
        except CronSimError as error:
            raise ScheduleError(
                f"cron '{expression}': the {field} field '{text}' is not valid. {_USE[field]}"
            ) from error
    try:
        return CronSim(" ".join(texts), _ANY_DAY)
    except CronSimError as error:
        raise ScheduleError(_never(expression)) from error


def _never(expression: str) -> str:
    _, _, day, month, weekday = expression.split()
    return (
        f"cron '{expression}' never comes: no day fits the day-of-month field '{day}', the month field '{month}' and "
        f"the day-of-week field '{weekday}' together."
    )


_USE = {
    "minute": "Use minutes from 0 to 59, '*', ranges, lists and steps, as in '0,30' or '*/15'.",
    "hour": "Use hours from 0 to 23, '*', ranges, lists and steps, as in '8-18' or '*/2'.",
    "day-of-month": "Use days from 1 to 31, 'L' for the last day, 'LW' for the last working day, '*', ranges, lists.",
    "month": "Use months from 1 to 12 or JAN to DEC, '*', ranges, lists and steps.",
    "day-of-week": "Use days from 0 to 7 (0 and 7 are Sunday) or SUN to SAT, '5L' for the last Friday, 'MON#2', '*'.",
}
