"""Times as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise

from ai_whisperer.domain.clock import LENGTH_PATTERN, LENGTHS_PATTERN
from ai_whisperer.late_pattern import late_pattern

_LENGTHS = late_pattern(LENGTH_PATTERN, re.IGNORECASE)
_LENGTHS_ONLY = late_pattern(LENGTHS_PATTERN, re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def moment(at: float | None) -> str:
    """A time as people read it, in their own zone."""
    if at is None:
        return ""
    try:
        return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"


def timestamp(at: float) -> str:
    """Seconds since the epoch as ISO 8601, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_in(text: str) -> float | None:
    """The seconds of a length of time as people write it: `90`, `1h 30min`, `2 days`, `1w`; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return seconds_by_units(text)


def seconds_by_units(text: str) -> float | None:
    """The seconds of a length of time whose numbers all have units; None if it is none."""
    parts = _LENGTHS.findall(text) if _LENGTHS_ONLY.fullmatch(text.strip()) else []
    return sum(float(count) * _SECONDS[unit[0].lower()] for count, unit in parts) if parts else None


def duration(seconds: float) -> str:
    """A length of time in its two largest units."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    (size, unit), (smaller, rest) = next(pair for pair in pairwise(_UNITS) if seconds >= pair[0][0])
    parts = ((int(seconds // size), unit), (int(seconds % size // smaller), rest))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
