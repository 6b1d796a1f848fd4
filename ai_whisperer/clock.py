"""Time, chance and ids come in from outside, so that a seed replays a whole run."""

from __future__ import annotations

import random
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day. Waiting is the event loop's business, on the same time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class SystemClock:
    now = staticmethod(time.time)


class IdSource(Protocol):
    """Makes ids for tasks and mails. No two may be alike."""

    def new(self) -> str: ...


class TimedIds:
    """Ids that sort by the time they were made and do not meet: milliseconds, then 52 bits of chance."""

    def __init__(self, clock: Clock, random: random.Random) -> None:
        self._clock = clock
        self._random = random

    def new(self) -> str:
        return f"{int(self._clock.now() * 1000):011x}{self._random.getrandbits(52):013x}"
