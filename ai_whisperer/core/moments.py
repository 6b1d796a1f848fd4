"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

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


def duration(seconds: float) -> str:
    """A length of time in its two largest units."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    (size, unit), (smaller, rest) = next(pair for pair in pairwise(_UNITS) if seconds >= pair[0][0])
    parts = ((int(seconds // size), unit), (int(seconds % size // smaller), rest))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
