"""Until when and for what an agent may sleep."""

from __future__ import annotations

from collections.abc import Sequence

from ai_whisperer.core.text import check_text
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.records import MailRecord, Priority, SleepPlan

MAIL_RECEIVED = "mail_received"
"""The wake event that any mail is."""

_LONGEST_SLEEP_SECONDS = 100 * 366 * 86_400.0
_LONGEST_EVENT_NAME = 200


def sleep_plan(
    now: float, *, duration_seconds: float | None, until: float | None, wake_events: Sequence[str]
) -> SleepPlan:
    """The plan that these make, whichever comes first; raises `InvalidInputError` if the agent would never wake."""
    for value in (duration_seconds, until):
        if value is not None and not isinstance(value, int | float):
            raise InvalidInputError(f"Times must be numbers of seconds, not {type(value).__name__}.")
    if duration_seconds is not None:
        if not 0 < duration_seconds <= _LONGEST_SLEEP_SECONDS:
            raise InvalidInputError(
                f"duration_seconds must be more than 0 and at most 100 years, not {duration_seconds}."
            )
        until = min(now + duration_seconds, until) if until is not None else now + duration_seconds
    if until is not None and not now - 1 <= until <= now + _LONGEST_SLEEP_SECONDS:
        raise InvalidInputError(f"until must be a time to come, in seconds since the epoch, not {until}.")
    if isinstance(wake_events, str):
        raise InvalidInputError(f"wake_events must be a list of names, not the text '{wake_events[:50]}'.")
    for event in wake_events:
        check_text("wake event", event, max_bytes=_LONGEST_EVENT_NAME)
    if until is None and not wake_events:
        raise InvalidInputError("Give a duration, a time or at least one wake event, or the agent would never wake.")
    return SleepPlan(until=until, wake_events=tuple(wake_events))


def wakes(mail: MailRecord, sleep: SleepPlan) -> bool:
    """Whether the mail ends the sleep: an important one always, any other if the sleeper listens for mail."""
    return mail.priority in (Priority.URGENT, Priority.HIGH) or MAIL_RECEIVED in sleep.wake_events
