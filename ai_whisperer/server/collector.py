"""The garbage collector of a process that is there to serve."""

from __future__ import annotations

import asyncio
import gc

_THRESHOLDS = (20_000, 20, 5)
"""Python looks through the newest after 700 of them. A thousand tasks have 40,000 objects that are no garbage."""
_LEFT_SECONDS = 1.0
"""So long after a session was closed what is left of it is looked for: those that are closed by then go with it."""


def settle_collector() -> None:
    """Let the collector look less often, and never again at what there is by now.

    What was imported stays until the process ends, and to look through it again and again took 6 % of all instructions
    with 500 tasks at the same time, and more with more. What becomes garbage later is found as before, a little later;
    what is there by now never is, so call this before sessions are opened. This changes the whole process: it is for
    one that is ours.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


class Leftovers:
    """What is left of sessions that were closed: they refer to themselves, so only the collector finds them."""

    def __init__(self) -> None:
        self._looking: asyncio.TimerHandle | None = None

    def look_later(self) -> None:
        """Look for them once, soon, if the collector was settled; one that was not looks often enough by itself."""
        if self._looking is None and gc.get_threshold() == _THRESHOLDS:
            self._looking = asyncio.get_running_loop().call_later(_LEFT_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        gc.collect()
