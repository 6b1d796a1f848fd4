"""Time zones as rows of stretches: within a stretch the clocks on the wall go on evenly."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

_DAY_SECONDS = 86_400

HORIZON_YEARS = 50
"""So far ahead or back it is looked for something that happens."""


class Stretch(NamedTuple):
    """From `start` to before `end` (UTC seconds) the wall shows UTC plus `offset`.

    `shown` is the wall time up to which the wall has come before `start`. Where the clocks go forward it is earlier
    than the first wall time of the stretch, and what lies between is never shown; where they go back it is later, and
    what lies between is shown again.
    """

    start: int
    end: int
    offset: int
    shown: int


def is_zone(name: str) -> bool:
    """Whether there is a time zone of that name. UTC needs no time zone database."""
    if name == "UTC":
        return True
    from zoneinfo import ZoneInfo  # here and below: few sessions ask for a zone

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found; not a name or not a zone's file; a folder
        return False
    return True


def similar_zones(name: str) -> list[str]:
    """Names of zones that may have been meant."""
    from zoneinfo import available_timezones

    zones = {zone.casefold(): zone for zone in sorted(available_timezones())}
    zones |= {zone.rpartition("/")[2].casefold(): zone for zone in zones.values() if zone.count("/") == 1}
    asked = name.strip().replace(" ", "_").casefold()
    return list(dict.fromkeys(zones[each] for each in difflib.get_close_matches(asked, zones, n=3, cutoff=0.75)))


def stretches_from(zone: str, at: int) -> Iterator[Stretch]:
    """The stretch of the zone that `at` lies in, and those after it as far as the horizon."""
    year = _year(at)
    for each in range(year, year + HORIZON_YEARS + 1):
        yield from (stretch for stretch in _stretches(zone, each) if stretch.end > at)


def stretches_back(zone: str, at: int) -> Iterator[Stretch]:
    """The stretch of the zone that `at` lies in, and those before it as far as the horizon, the latest first."""
    year = _year(at)
    for each in range(year, year - HORIZON_YEARS - 1, -1):
        yield from (stretch for stretch in reversed(_stretches(zone, each)) if stretch.start <= at)


@lru_cache(maxsize=4096)
def _stretches(zone: str, year: int) -> tuple[Stretch, ...]:
    """The stretches of one year (UTC). A year's end ends a stretch too, with nothing skipped or shown again.

    The day before the year is looked at as well: what the wall shows again may reach into the year.
    """
    offset_at = _offsets(zone)
    first, end = _start_of(year), _start_of(year + 1)
    start = at = first - _DAY_SECONDS
    offset = offset_at(at)
    shown = start + offset
    found: list[Stretch] = []
    while at < end:
        later = min(at + _DAY_SECONDS, end)
        if offset_at(later) == offset:
            at = later
            continue
        at = _change_between(at, later, offset_at)
        found.append(Stretch(start, at, offset, shown))
        shown = max(shown, at + offset)
        start, offset = at, offset_at(at)
    found.append(Stretch(start, end, offset, shown))
    return tuple(
        each if each.start >= first else each._replace(start=first, shown=max(each.shown, first + each.offset))
        for each in found
        if first < each.end and each.start < end
    )


def _change_between(before: int, after: int, offset_at: Callable[[int], int]) -> int:
    """The second at which the offset becomes another one than it is before."""
    old = offset_at(before)
    return before + bisect_right(range(before, after), 0, key=lambda at: offset_at(at) != old)


def _offsets(zone: str) -> Callable[[int], int]:
    if zone == "UTC":
        return lambda _: 0
    from zoneinfo import ZoneInfo

    known = ZoneInfo(zone)

    def offset_at(at: int) -> int:
        offset = datetime.fromtimestamp(at, known).utcoffset()
        return 0 if offset is None else offset.days * _DAY_SECONDS + offset.seconds

    return offset_at


def _year(at: int) -> int:
    return datetime.fromtimestamp(at, UTC).year


def _start_of(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
