"""What may go: the decision what of a session is erased before a horizon, and what stays whatever its age.

Open work stays, and so does what waits for a person: dead letters that nobody has dismissed, and the user's mail until
it is archived. Of what goes the standing stays: that it was accepted under its id, how it ended, what it used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container

from ai_whisperer.core.moments import seconds_by_units
from ai_whisperer.domain.mail import USER, MailState
from ai_whisperer.domain.retention import ThreadStanding
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import InvalidInputError

_NUMBER = re.compile(r"\d{1,40}(?:\.\d{1,40})?")
_LONGEST_SECONDS = 100 * 366 * 86_400.0
_EXPECTED = "a length of time with its unit, such as 30d, 8w, 12h, 1h 30min or 90s"
_SETTLED_MAIL = frozenset((MailState.READ, MailState.REPLIED, MailState.ARCHIVED))


def age_in_seconds(age: str | float) -> float:
    """How old something is that is written as `30d` or `1h 30min`, or given in seconds; raises `InvalidInputError`."""
    if isinstance(age, str):
        return _written(age)
    if isinstance(age, bool) or not isinstance(age, int | float) or not 0 <= age <= _LONGEST_SECONDS:
        raise InvalidInputError(f"{age!r:.50} is no age: give seconds from 0 on, or {_EXPECTED}.")
    return float(age)


def _written(age: str) -> float:
    text = age.strip()
    if _NUMBER.fullmatch(text):  # seconds elsewhere: whoever means days would lose nearly everything
        raise InvalidInputError(f"{age[:50]!r} is no age: write {_EXPECTED}. Did you mean {text}d?")
    seconds = seconds_by_units(text)
    if seconds is None:
        raise InvalidInputError(f"{age[:50]!r} is no age: write {_EXPECTED}.")
    if not math.isfinite(seconds) or seconds > _LONGEST_SECONDS:
        raise InvalidInputError(f"{age[:50]!r} is too long: at most 100 years.")
    return seconds


def may_erase_thread(thread: ThreadStanding, *, before: float, open_threads: Container[tuple[str, str]]) -> bool:
    """Whether a conversation has ended before the horizon and nobody is left who needs it.

    `open_threads` are those with tasks that wait or run, as they are in memory.
    """
    if thread.is_erased or thread.has_dead_letter or (thread.agent_id, thread.thread_id) in open_threads:
        return False
    return thread.last_at < before and thread.ended_at is not None and thread.ended_at < before


def may_erase_mail(
    *, state: MailState, recipient: str, created_at: float, before: float, task_state: TaskState | None
) -> bool:
    """Whether a mail was settled before the horizon: nobody has it before them, and no task is left that is for it.

    `task_state` is that of the task which handles it, None if it is not there or was dismissed.
    """
    if created_at >= before or state not in _SETTLED_MAIL:
        return False
    if recipient == USER:
        return state is MailState.ARCHIVED
    return task_state is None or (task_state.ended and not task_state.is_dead_letter)
