"""Time, chance and ids come in from outside, so that a seed replays a whole run."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Protocol

LENGTH_PATTERN = r"(\d+(?:\.\d+)?) ?(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|w|weeks?)(?![a-zA-Z])"
"""A number with a unit of time, whatever the case of its letters."""

LENGTHS_PATTERN = rf"(?:{LENGTH_PATTERN}[ ,]*)+"
"""A length of time whose numbers all have units: `15min`, `1h 30min`."""


class Clock(Protocol):
    """The clock on the wall, which somebody may set at any moment, and a count of seconds, which nobody can."""

    def now(self) -> float:
        """Seconds since the epoch, UTC, as the wall clock shows them. They may jump, forward and back."""
        ...

    def elapsed(self) -> float:
        """Seconds since some moment in the past. They go evenly, also while the machine is suspended if it can tell."""
        ...


_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux has a count that goes on while the machine is suspended; its usual one stands still."""


class SystemClock:
    now = staticmethod(time.time)
    elapsed = staticmethod(time.monotonic if _BOOT_TIME is None else partial(time.clock_gettime, _BOOT_TIME))


class IdSource(Protocol):
    """Makes ids for tasks and mails. No two may be alike."""

    def new(self) -> str: ...


_CHANCE_BITS = 52


class TimedIds:
    """Ids that sort by the time they were made and do not meet: milliseconds, then 52 bits of chance."""

    def __init__(self, clock: Clock, random: random.Random) -> None:
        self._clock = clock
        self._random = random

    def new(self) -> str:
        return f"{int(self._clock.now() * 1000) << _CHANCE_BITS | self._random.getrandbits(_CHANCE_BITS):024x}"
