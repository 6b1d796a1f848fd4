"""The levels of the sandbox by name, and what sets them apart."""

from __future__ import annotations

LANDLOCK, RLIMITS = "landlock", "rlimits"
STRONG = ("namespaces", "bubblewrap", "sandlock")
"""Those that keep a program from all that is not its own, the best first. One that does not on this machine is not
used there."""
TALKING = ("sandlock",)
"""Those of them that can open the network for granted hosts alone."""
ALL = (*STRONG, LANDLOCK, RLIMITS)
"""The others let something out everywhere, and have to be named."""


def strength_of(level: str) -> int:
    """How much it holds: the same for all that hold everything, and 0 for none."""
    return {LANDLOCK: 2, RLIMITS: 1}.get(level, 3 if level in STRONG else 0)
