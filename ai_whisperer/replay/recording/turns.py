"""Handles of an event loop that wait for their turn, in the order of a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Protocol

AT_ONCE = 0
"""The place of what runs before all else."""
LAST = 1 << 60
"""The place of what has nothing more to tell."""
SOON = 1 << 61
"""Added to the place of what tells nothing now: it goes when nothing else can, before time goes on."""
LATE_SECONDS = 0.005
"""So late something may have been done when the session was recorded."""


class Schedule(Protocol):
    """Says in which order what is ready runs."""

    def place(self, handle: asyncio.Handle) -> int:
        """The place of this in the order, as it is now."""

    def turn(self, place: int) -> float | None:
        """When it was the turn of what has this place; None if others go first."""


class Turns:
    """Who waits for a turn. Places change while they wait, so they are looked at anew each time."""

    def __init__(self) -> None:
        self.schedule: Schedule | None = None
        self._waiting: list[asyncio.Handle] = []

    def sorted_out(self, ready: Iterable[asyncio.Handle]) -> Iterator[asyncio.Handle]:
        """Those that run at once; the others wait from now on."""
        for handle in ready:
            if handle.cancelled() or self.schedule is None or self.schedule.place(handle) == AT_ONCE:
                yield handle
            else:
                self._waiting.append(handle)

    def next(self) -> tuple[asyncio.Handle, float] | None:
        """Whose turn it is, and when it was; it still waits. None if it is nobody's."""
        found = self._first()
        at = None if found is None or self.schedule is None else self.schedule.turn(found[0])
        return None if found is None or at is None else (found[1], at)

    def take(self, handle: asyncio.Handle) -> asyncio.Handle:
        """This one waits no more."""
        self._waiting.remove(handle)
        return handle

    def take_first(self, *, soon: bool = False) -> asyncio.Handle | None:
        """The first, also out of its turn, waits no more; the first of those that tell nothing now if `soon`."""
        found = self._first(SOON if soon else AT_ONCE)
        return None if found is None else self.take(found[1])

    def take_all(self) -> list[asyncio.Handle]:
        """Nobody waits any more."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def _first(self, least: int = AT_ONCE) -> tuple[int, asyncio.Handle] | None:
        if self.schedule is None or not self._waiting:
            return None
        self._waiting = [handle for handle in self._waiting if not handle.cancelled()]
        places = [(self.schedule.place(handle), handle) for handle in self._waiting]
        return min((each for each in places if each[0] >= least), key=lambda each: each[0], default=None)
