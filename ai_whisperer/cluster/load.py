"""How much a process has to do: how late its event loop is, and how much of a processor it takes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ai_whisperer.domain.nodes import IDLE, Load

WINDOW_SECONDS: Final = 10.0
"""What was so long ago counts for a third of what is now."""


class Gauge:
    """Measures the event loop that it is made in, from any one other thread that reads it now and then.

    Each time it is read it lets the event loop answer, and the next time it knows how long that took, or has taken.
    """

    def __init__(
        self, *, now: Callable[[], float] = time.monotonic, used: Callable[[], float] = time.process_time
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = now
        self._used = used
        self._asked_at: float | None = None
        self._late = 0.0
        self._read_at = now()
        self._used_before = used()
        self._load = IDLE

    def read(self) -> Load:
        """The averages of the last seconds."""
        at, used = self._now(), self._used()
        passed = at - self._read_at
        if passed > 0:
            asked_at = self._asked_at
            late = self._late if asked_at is None else at - asked_at
            self._load = averaged(self._load, Load(late, (used - self._used_before) / passed), passed)
            self._read_at, self._used_before = at, used
        if self._asked_at is None:
            self._asked_at = at
            with suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._answer)
        return self._load

    def _answer(self) -> None:
        asked_at, self._asked_at = self._asked_at, None
        if asked_at is not None:
            self._late = self._now() - asked_at


def averaged(before: Load, now: Load, passed_seconds: float) -> Load:
    """The average, in which what is now counts the more the more time has passed."""
    share = 1 - math.exp(-passed_seconds / WINDOW_SECONDS)
    return Load(*(old + share * (new - old) for old, new in zip(before, now, strict=True)))
