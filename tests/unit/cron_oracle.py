"""When cron fires, found the slow way: by looking at the clock on the wall all the time.

Shares nothing with the package: its own reading of the fields, and no arithmetic with time zones but asking what the
wall shows. It rests on zones that are changed at quarters of an hour, to quarters of an hour, and checks that.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

_QUARTER = 900
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_NAMES = {name: number for number, name in enumerate(_WEEKDAYS)} | {
    name: number for number, name in enumerate(_MONTHS, 1)
}


class Wall:
    """What the clock on a zone's wall shows in two years, and when. A time that it shows is counted in minutes."""

    def __init__(self, zone: str, first_year: int) -> None:
        self.start = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp())
        self.end = int(datetime(first_year + 2, 1, 1, tzinfo=UTC).timestamp())
        self._quarters: dict[int, list[int]] = {}
        self.changes: list[int] = []
        before = None
        known = ZoneInfo(zone)
        for quarter in range(self.start, self.end, _QUARTER):
            shown = _shown(quarter, known)
            assert shown % 15 == 0
            assert _shown(quarter + _QUARTER - 60, known) == shown + 14
            self._quarters.setdefault(shown, []).append(quarter)
            if before is not None and shown != before + 15:
                self.changes.append(quarter)
            before = shown
        self._times = sorted(self._quarters)
        self.first_time, self.last_time = self._times[0], self._times[-1] + 14

    def instants(self, time: int) -> list[int]:
        """When the wall shows this time: once, never or twice."""
        return [quarter + 60 * (time % 15) for quarter in self._quarters.get(time - time % 15, ())]

    def first_from(self, time: int) -> int:
        """When the wall first shows this time, or a later one if it never does."""
        if time - time % 15 in self._quarters:
            return self.instants(time)[0]
        return self.instants(self._times[bisect_left(self._times, time)])[0]


def _shown(at: int, zone: ZoneInfo) -> int:
    shown = datetime.fromtimestamp(at, zone)
    return shown.toordinal() * 1440 + shown.hour * 60 + shown.minute


def due_instants(expression: str, wall: Wall) -> list[int]:
    """Every instant at which the expression fires in the two years."""
    minute, hour, day, month, weekday = expression.upper().split()
    minutes = [60 * h + m for h in sorted(_values(hour, 0, 23)) for m in sorted(_values(minute, 0, 59))]
    is_fixed = minute[0] != "*" and hour[0] != "*"
    found: set[int] = set()
    on = date.fromordinal(wall.first_time // 1440)
    while on.toordinal() <= wall.last_time // 1440:
        if on.month in _values(month, 1, 12) and _fits_day(on, day, weekday):
            for each in minutes:
                time = on.toordinal() * 1440 + each
                if not is_fixed:
                    found.update(wall.instants(time))
                elif wall.first_time <= time <= wall.last_time:
                    found.add(wall.first_from(time))
        on += timedelta(days=1)
    return sorted(found)


def _fits_day(on: date, day: str, weekday: str) -> bool:
    fits_day = any(_fits_day_term(on, term) for term in day.split(","))
    fits_weekday = any(_fits_weekday_term(on, term) for term in weekday.split(","))
    if day[0] == "*" or weekday[0] == "*":
        return fits_day and fits_weekday
    return fits_day or fits_weekday


def _fits_day_term(on: date, term: str) -> bool:
    last = calendar.monthrange(on.year, on.month)[1]
    if term == "L":
        return on.day == last
    if term == "LW":
        working = [each for each in range(1, last + 1) if date(on.year, on.month, each).weekday() < 5]
        return on.day == working[-1]
    return on.day in _values(term, 1, 31)


def _fits_weekday_term(on: date, term: str) -> bool:
    today = on.isoweekday() % 7
    if term.endswith("L"):
        return today == int(term[:-1]) % 7 and (on + timedelta(days=7)).month != on.month
    if "#" in term:
        name, number = term.split("#")
        return today == _number(name) % 7 and (on.day - 1) // 7 + 1 == int(number)
    return today in {value % 7 for value in _values(term, 0, 7)}


def _values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        if first == "*":
            found.update(range(low, high + 1, int(step or 1)))
        elif last:
            found.update(range(_number(first), _number(last) + 1, int(step or 1)))
        elif step:
            found.update(range(_number(first), high + 1, int(step)))
        else:
            found.add(_number(first))
    return found


def _number(text: str) -> int:
    return _NAMES[text] if text in _NAMES else int(text)
