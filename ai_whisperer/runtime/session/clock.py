"""The time of a session: what the wall clock shows, but it goes evenly while something is counted by it.

All times that a session keeps are on this clock: when things happened, and when what lasts for a while is over. So a
lease, a deadline or a sleep takes as long as it was meant to, however the wall clock is set meanwhile, and nothing
happens before its cause. What somebody named by the wall clock (cron, sleep until a time) is compared with the wall
clock itself.
"""

from __future__ import annotations

import math

from ai_whisperer.domain.clock import Clock

_JITTER_SECONDS = 0.5
"""Two readings are not of the same instant, and the wall clock is nudged all the time."""
_LEAST = -_JITTER_SECONDS
_MOST = 1 + _JITTER_SECONDS
"""So far ahead the wall clock may be beside the offset, which is in whole seconds."""


class SessionClock:
    """Begins at what the wall clock shows, or at `after` if that is later: nothing gets a time before that.

    `offset` is how far the wall clock is ahead of this one, in whole seconds, as it was noticed last: almost always 0.
    """

    __slots__ = ("_base", "_elapsed", "offset", "wall")

    def __init__(self, clock: Clock, *, after: float = 0.0) -> None:
        self._elapsed = clock.elapsed
        self.wall = clock.now
        """Seconds since the epoch as the wall clock shows them, now."""
        self._base = 0.0
        self.offset = 0
        self.settle(after=after)

    def now(self) -> float:
        """Seconds since the epoch, as far as the session knows."""
        return self._base + self._elapsed()

    def shown(self, at: float) -> float:
        """What the wall clock will show at that time, if nobody sets it."""
        return at + self.offset

    def is_off(self, now: float) -> bool:
        """Whether the wall clock was set since it was looked at last."""
        return not _LEAST < self.wall() - now - self.offset < _MOST

    def notice(self) -> None:
        """Take note of how far the wall clock is ahead, and continue as before."""
        self.offset = math.floor(self.wall() - self.now() + _JITTER_SECONDS / 2)

    def settle(self, *, after: float) -> None:
        """Show what the wall clock shows, or `after` if that is later. Nothing may be counted at that moment."""
        wall = self.wall()
        is_behind = wall < after - _JITTER_SECONDS
        self._base = max(after, wall) - self._elapsed()
        self.offset = 0
        if is_behind:
            self.notice()
