"""How long a provider asks to be left alone, read from the headers of its refusal."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"\s*\+?(?=\.?\d)(\d*)(?:\.(\d*))?\s*", re.ASCII)
_MOST_DIGITS = 300
"""A number with more digits is longer than anybody waits, and more than a float can hold."""
_MOST_CHARACTERS = 100
"""No date is longer."""


def retry_after_seconds(headers: Mapping[str, str], *, now: float) -> float | None:
    """The wait that `retry-after-ms` or `retry-after` asks for; None if neither says anything that can be read.

    The names of the headers are in small letters. A number may have a fraction and any number of digits: one that is
    too large is infinite. A date may be an HTTP date in any of its forms or an ISO 8601 time, in UTC if it names no
    zone; one that has passed asks for no wait. Numbers below zero and words ask for nothing.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    date = _date(text[:_MOST_CHARACTERS].strip())
    return None if date is None else max(date.timestamp() - now, 0.0)


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    whole, fraction = found[1].lstrip("0"), found[2] or ""
    if len(whole) > _MOST_DIGITS:
        return math.inf
    return float(f"{whole or 0}.{fraction[:_MOST_DIGITS] or 0}")


def _date(text: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(text)
            date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
            date.timestamp()  # a date at the edge of the calendar has none
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return date
    return None
