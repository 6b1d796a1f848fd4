"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


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
