"""The garbage collector of a process that is there to serve."""

from __future__ import annotations

import gc

_NEW_OBJECTS, _YOUNG_LOOKS, _MIDDLE_LOOKS = 20_000, 20, 50
"""Python looks through the newest after 700 of them. A thousand tasks have 40,000 objects that are no garbage."""


def settle_collector() -> None:
    """Let the collector look less often, and never again at what there is by now.

    What was imported and opened stays until the process ends, and to look through it again and again took 6 % of all
    instructions with 500 tasks at the same time, and more with more. What becomes garbage later is found as before, a
    little later. This changes the whole process: it is for one that is ours.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_LOOKS, _MIDDLE_LOOKS)
