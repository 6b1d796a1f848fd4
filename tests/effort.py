"""How much of the same is tried: a little each time, and `WHISPERER_TEST_EFFORT` times as much in long runs."""

from __future__ import annotations

import os

EFFORT = int(os.environ.get("WHISPERER_TEST_EFFORT", "1"))


def some(usual: int) -> int:
    """How many are tried where each time a few are enough."""
    return usual * EFFORT


def spread(count: int, *, usual: int, first: int = 1) -> list[int]:
    """Numbers from the first to the last, evenly spread: all of them if there are no more than are to be tried."""
    most = min(some(usual), count - first + 1)
    if most <= 1:
        return [first][:most]
    return sorted({first + round(nth * (count - first) / (most - 1)) for nth in range(most)})
