"""Being asked to end a storm before all of its universes have run."""

from __future__ import annotations


class Stopping:
    """Counts how often it was asked. What runs looks at it when it can stop: between universes, and as it shrinks."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self) -> None:
        self.asked += 1
