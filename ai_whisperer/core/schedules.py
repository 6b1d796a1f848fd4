"""When a schedule is due, and what becomes of the times that it missed.

A schedule names a rising row of due instants: those of its cron expression (see `core.cron` for what happens when the
clocks change), or every `interval_seconds` after its creation, which do not drift and know no clock changes. `next_at`
in its record is the first instant that is not settled yet. Each instant is settled once: it fires, or it is counted as
missed. A clock that is set back therefore fires nothing again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import msgspec

from ai_whisperer.core.cron import CronTimes, cron_times
from ai_whisperer.core.fields import Place, check_fields
from ai_whisperer.core.signals import check_event_data, check_event_name
from ai_whisperer.core.text import check_text
from ai_whisperer.core.zones import is_zone, similar_zones
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition, ScheduleRecord
from ai_whisperer.errors import InvalidInputError, ScheduleError, TooLargeError

ScheduleRef = str | ScheduleRecord
"""A schedule: its id or its record."""

LATE_SECONDS = 60.0
"""An instant that lies further back when it is looked at is missed: the process was down, or the clock jumped."""

MAX_BATCH = 1_000
"""So many instants are settled one by one at a time; more of them in several goes."""

_SHORTEST_INTERVAL_SECONDS = 1.0
_LONGEST_INTERVAL_SECONDS = 100 * 366 * 86_400.0


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about a schedule now: fire `instants`, count `missed` more, and look again at `next_at`."""

    instants: tuple[float, ...]
    missed: int
    next_at: float | None


def schedule_id_of(schedule: ScheduleRef) -> str:
    """The id of the schedule that is meant; raises `InvalidInputError`."""
    if not isinstance(schedule, str | ScheduleRecord):
        raise InvalidInputError(f"Name a schedule by its id, not by {type(schedule).__name__}.")
    return schedule if isinstance(schedule, str) else schedule.id


def _complain(_: Place, complaint: str) -> NoReturn:
    raise ScheduleError(f"The schedule is not valid: {complaint}")


def schedule_from(**fields: Any) -> ScheduleDefinition:
    """The schedule that the fields describe; raises `ScheduleError` if one is of the wrong kind."""
    try:
        return msgspec.convert(fields, ScheduleDefinition)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        with suppress(TypeError, ValueError, RecursionError):
            check_fields(msgspec.to_builtins(fields), ScheduleDefinition, complain=_complain)
        raise ScheduleError(
            f"The schedule is not valid: {error}. `missed` is one of {', '.join(MissedRuns)}."
        ) from error


def check_schedule(definition: ScheduleDefinition, *, agent_id: str | None, max_prompt_bytes: int) -> None:
    """Raise `ScheduleError` (or `TooLargeError`) that begins with the field which is wrong."""
    _check_one_of(definition, "cron", "interval_seconds")
    _check_one_of(definition, "prompt", "event")
    _check_zone(definition.zone)
    if definition.cron is not None:
        cron_times(definition.cron, definition.zone)
    elif definition.interval_seconds is not None:
        seconds = definition.interval_seconds
        if not _SHORTEST_INTERVAL_SECONDS <= seconds <= _LONGEST_INTERVAL_SECONDS:
            raise ScheduleError(f"interval_seconds must be at least 1 second and at most 100 years, not {seconds}.")
    if definition.prompt is not None:
        if agent_id is None:
            raise ScheduleError("prompt needs an agent that it goes to. Name one, or let the schedule fire an event.")
        _check_field("prompt", partial(check_text, "prompt", definition.prompt, max_bytes=max_prompt_bytes))
        if not definition.prompt.strip():
            raise ScheduleError("prompt is empty. Say what is to fire.")
    elif definition.event is not None:
        _check_field("event", partial(check_event_name, definition.event))
        _check_field("data", partial(check_event_data, definition.data))
    if definition.event is not None and definition.wake:
        raise ScheduleError("wake goes with a prompt only: an event wakes the agents that sleep until it.")
    if definition.event is None and definition.data is not None:
        raise ScheduleError("data goes with an event only. Put what the agent needs to know into the prompt.")


def next_due(definition: ScheduleDefinition, after: float, anchor: float) -> float | None:
    """The first due instant after that time; None if there is none. Intervals are counted from `anchor`."""
    return _times(definition, anchor).next(after)


def due_now(record: ScheduleRecord, now: float) -> Due:
    """What is due of a schedule, as its policy for missed instants wants it.

    `skip`: missed instants do not fire. `once`: of the missed ones the latest fires. `all`: every one fires, at most
    `MAX_BATCH` in one go; the rest is due as soon as the record has the new `next_at`.
    """
    first = record.next_at
    if first is None or first > now:
        return Due(instants=(), missed=0, next_at=first)
    times = _times(record.definition, record.created_at)
    fire: list[float] = []
    missed = 0
    following: float | None = first
    if record.definition.missed is not MissedRuns.ALL and now - first > LATE_SECONDS:
        latest, missed = _passed(times, first, math.nextafter(now - LATE_SECONDS, -math.inf))
        if record.definition.missed is MissedRuns.ONCE:
            fire.append(latest)
            missed -= 1
        following = times.next(latest)
    while following is not None and following <= now and len(fire) < MAX_BATCH:
        fire.append(following)
        following = times.next(following)
    return Due(instants=tuple(fire), missed=missed, next_at=following)


def none_fires(record: ScheduleRecord, now: float) -> Due:
    """What is due of a schedule that may not fire now: whatever its policy, all of it is missed."""
    first = record.next_at
    if first is None or first > now:
        return Due(instants=(), missed=0, next_at=first)
    times = _times(record.definition, record.created_at)
    latest, missed = _passed(times, first, now)
    return Due(instants=(), missed=missed, next_at=times.next(latest))


def resumed_at(record: ScheduleRecord, now: float) -> float | None:
    """The instant with which a paused schedule goes on. What passed while it was paused does not count as missed."""
    if record.next_at is None or record.next_at > now:
        return record.next_at
    return next_due(record.definition, now, record.created_at)


def task_id_of(record: ScheduleRecord, due_at: float) -> str:
    """The id of the task that an instant becomes: no two instants have the same, of no two schedules.

    Callers cannot give ids with `~`. The time of creation tells a schedule from an earlier one of the same id.
    """
    return f"{record.id}~{round(record.created_at * 1000):x}~{round(due_at * 1000)}"


class _IntervalTimes:
    """The instants at whole multiples of an interval after the anchor; otherwise as `CronTimes`."""

    def __init__(self, interval_seconds: float, anchor: float) -> None:
        self._interval = interval_seconds
        self._anchor = anchor

    def next(self, after: float) -> float:
        return self._instant(self._passed_by(after) + 1)

    def last(self, until: float) -> float | None:
        number = self._passed_by(until)
        return self._instant(number) if number else None

    def count(self, after: float, until: float) -> int:
        return max(self._passed_by(until) - self._passed_by(after), 0)

    def _instant(self, number: int) -> float:
        return self._anchor + number * self._interval

    def _passed_by(self, at: float) -> int:
        """How many instants are not later than this. The quotient may be off by one where it is rounded."""
        number = max(math.floor((at - self._anchor) / self._interval), 0)
        while self._instant(number + 1) <= at:
            number += 1
        while number and self._instant(number) > at:
            number -= 1
        return number


_Times = CronTimes | _IntervalTimes


def _times(definition: ScheduleDefinition, anchor: float) -> _Times:
    if definition.cron is None:
        return _IntervalTimes(definition.interval_seconds or _LONGEST_INTERVAL_SECONDS, anchor)
    _check_zone(definition.zone)  # a zone may be missing where the session is opened next
    return cron_times(definition.cron, definition.zone)


def _passed(times: _Times, first: float, until: float) -> tuple[float, int]:
    """The latest instant up to that time and how many there are from the first one on, which counts in any case.

    (The first may not be in the row any more if the rules of its zone were changed since it was stored.)
    """
    latest = max(times.last(until) or first, first)
    return latest, 1 + times.count(first, latest)


def _check_one_of(definition: ScheduleDefinition, one: str, other: str) -> None:
    given = [field for field in (one, other) if getattr(definition, field) is not None]
    if len(given) != 1:
        what = "both are given" if given else "neither is given"
        raise ScheduleError(f"{one} or {other}: {what}, a schedule needs exactly one of them.")


def _check_zone(zone: str) -> None:
    if not is_zone(zone):
        similar = similar_zones(zone)
        hint = f"Did you mean {' or '.join(similar)}?" if similar else "Use a name like 'Europe/Berlin' or 'UTC'."
        raise ScheduleError(f"zone {zone[:100]!r} is not known here. {hint}")


def _check_field(field: str, check: Callable[[], None]) -> None:
    try:
        check()
    except InvalidInputError as error:
        kind = TooLargeError if isinstance(error, TooLargeError) else ScheduleError
        raise kind(f"{field}: {error.message}") from error
