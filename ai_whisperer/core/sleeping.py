"""Until when and for what an agent may sleep."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import UTC, datetime

from ai_whisperer.core.signals import check_event_name
from ai_whisperer.domain.agents import SleepPlan
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import Priority, TaskKind, TaskRecord
from ai_whisperer.errors import InvalidInputError

MAIL_RECEIVED = "mail_received"
"""The wake event that any mail is."""

_LONGEST_SLEEP_SECONDS = 100 * 366 * 86_400.0

Time = float | datetime | str
"""A time of day: seconds since the epoch, a datetime with its zone, or such a one as ISO 8601 text."""


def sleep_plan(
    now: float, *, wall: float, duration_seconds: float | None, until: Time | None, wake_events: Sequence[str]
) -> SleepPlan:
    """The plan that these make, whichever comes first; raises `InvalidInputError` if the agent would never wake.

    `now` is the session's time, from which a duration counts, and `wall` what the wall clock shows, by which `until` is
    meant. Of a duration and a time the one counts that comes first as the clocks go now.
    """
    if duration_seconds is not None and not isinstance(duration_seconds, int | float):
        raise InvalidInputError(f"duration_seconds must be a number, not {type(duration_seconds).__name__}.")
    until = None if until is None else seconds_of(until)
    if duration_seconds is not None and not 0 < duration_seconds <= _LONGEST_SLEEP_SECONDS:
        raise InvalidInputError(f"duration_seconds must be more than 0 and at most 100 years, not {duration_seconds}.")
    if until is not None and not wall - 1 <= until <= wall + _LONGEST_SLEEP_SECONDS:
        raise InvalidInputError(f"until must be a time in the future, at most 100 years ahead, not {until}.")
    by_wall_clock = until is not None and (duration_seconds is None or until - wall < duration_seconds)
    if duration_seconds is not None and not by_wall_clock:
        until = now + duration_seconds
    if isinstance(wake_events, str) or not isinstance(wake_events, Sequence | Set):
        raise InvalidInputError(f"wake_events must be a list of names, not {wake_events!r:.50}.")
    for event in wake_events:
        check_event_name(event)
    if until is None and not wake_events:
        raise InvalidInputError("Give a duration, a time or at least one wake event, or the agent would never wake.")
    return SleepPlan(until=until, wake_events=tuple(wake_events), by_wall_clock=by_wall_clock)


def shown_until(plan: SleepPlan, *, offset: float) -> float | None:
    """What the wall clock, which is so many seconds ahead of the session's time, shows when the sleep is over."""
    return plan.until if plan.until is None or plan.by_wall_clock else plan.until + offset


def seconds_of(time: Time) -> float:
    """The time in seconds since the epoch; raises `InvalidInputError` if it is none or has no zone."""
    try:
        if isinstance(time, int | float):
            return float(time)
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
        if moment.tzinfo is None:
            raise InvalidInputError(f"The time {time} has no zone. Add one, for instance {moment.isoformat()}+00:00.")
        return moment.timestamp()
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInputError(
            f"{time!r} is not a time. Use seconds since the epoch, or ISO 8601 such as 2030-01-31T09:00:00+01:00."
        ) from error


def in_words(plan: SleepPlan, *, offset: float) -> str:
    """Until when, as the wall clock shows it, and for what, for a model."""
    parts = []
    until = shown_until(plan, offset=offset)
    if until is not None:
        parts.append(f"until {datetime.fromtimestamp(until, UTC).isoformat(timespec='seconds')}")
    if plan.wake_events:
        parts.append(f"until one of the events {', '.join(plan.wake_events)}")
    return " or ".join(parts)


def keeps_awake(work: TaskRecord | MailRecord, sleep: SleepPlan) -> bool:
    """Whether waiting work lets an agent not fall asleep: what woke it or would have, had it come a moment later."""
    if isinstance(work, MailRecord):
        return wakes(work, sleep)
    return work.kind in (TaskKind.WAKE, TaskKind.EVENT)


def wakes(mail: MailRecord, sleep: SleepPlan) -> bool:
    """Whether the mail ends the sleep: an important one always, any other if the sleeper listens for mail."""
    return mail.priority in (Priority.URGENT, Priority.HIGH) or MAIL_RECEIVED in sleep.wake_events
