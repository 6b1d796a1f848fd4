"""How long an outage is borne, and how often it is tried again meanwhile."""

from __future__ import annotations

import asyncio
from random import Random

_FIRST_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0


class Patience:
    """Counts from when it is made. Pauses grow, and differ by chance, so that not all clients come back at once."""

    def __init__(self, seconds: float, chance: Random) -> None:
        self._seconds = seconds
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._pause = _FIRST_SECONDS

    @property
    def is_over(self) -> bool:
        return self._loop.time() >= self._until

    def renew(self) -> None:
        """Another outage begins: there is as much time again. The pauses stay as long as they have become."""
        self._until = self._loop.time() + self._seconds

    def relax(self) -> None:
        """Things go well: the next pause is a short one."""
        self._pause = _FIRST_SECONDS

    async def pause(self) -> None:
        """Wait before the next attempt, not longer than there is time."""
        chosen = self._pause * self._chance.uniform(0.5, 1.0)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(max(0.0, min(chosen, self._until - self._loop.time())))
