"""Timers that fire late: when the event loop was held up, whoever was waited for may have answered meanwhile."""

from __future__ import annotations

LATE_SECONDS = 0.1
"""A timer that fires so much after its time was held up by this process, not by anybody outside."""
MOST_SPARED = 5
"""So often in a row somebody is spared for that: an event loop that is always late must not make a wait endless."""


def spared_seconds(*, late_seconds: float, patience_seconds: float) -> float:
    """How much longer to wait for somebody whose time is up, when the timer fired so late; 0 if it was on time."""
    return 0.0 if late_seconds < LATE_SECONDS else min(late_seconds, patience_seconds)
