"""Timers that fire late: when the event loop was held up, whoever was waited for may have answered meanwhile."""

from __future__ import annotations

_LATE_SECONDS = 0.1
"""A timer that fires so much after its time was held up by this process, not by anybody outside."""
_MOST_SPARED = 5
"""So often in a row somebody is spared for that: an event loop that is always late must not make a wait endless."""
_A_TURN = 1e-6


def spared_seconds(*, late_seconds: float, patience_seconds: float, times_spared: int) -> float:
    """How much longer to wait for somebody whose time is up, when the timer fired so late; 0 if no longer.

    Even on time they are spared for a turn of the event loop once: what has come may be in the hands of others.
    """
    if times_spared >= _MOST_SPARED:
        return 0.0
    if late_seconds >= _LATE_SECONDS:
        return min(late_seconds, patience_seconds)
    return 0.0 if times_spared else _A_TURN
