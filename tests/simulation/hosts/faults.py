"""What happens to nodes and their database, and when: drawn from a seed."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

FAULT_SECONDS = 40.0
"""So long something begins to happen now and then."""


HOLDER = "holder"
"""In place of the name of a node: the one that has the session then."""


class Kind(StrEnum):
    FREEZE = "freeze"
    KILL = "kill"
    CUT = "cut"
    """The connections of a node are gone; it can make others at once."""
    CUT_AT_COMMIT = "cut at the next commit of"
    """The same when the node has written something, before it is told so."""
    BLOCK = "block"
    """For a while nothing gets through between a node and the database, and neither is told."""
    STOP = "stop"
    DRAIN = "drain"
    MOVE = "move"
    STALL = "stall the database"
    RESTART = "restart the database"


_WEIGHTS = {
    Kind.FREEZE: 6,
    Kind.KILL: 3,
    Kind.CUT: 3,
    Kind.CUT_AT_COMMIT: 3,
    Kind.BLOCK: 3,
    Kind.STOP: 1,
    Kind.DRAIN: 1,
    Kind.MOVE: 3,
    Kind.STALL: 1,
    Kind.RESTART: 1,
}


class Fault(NamedTuple):
    """Something that happens to a node, or to the database, for so long. A session that is moved goes to the other."""

    at: float
    kind: Kind
    node: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.at:7.2f} {self.kind} {self.node} for {self.seconds:.2f} s"


_NODES = ("a", "b", HOLDER, HOLDER, HOLDER)


def drawn(seed: int) -> list[Fault]:
    """The faults of a run, in order."""
    chance = random.Random(f"faults {seed}")
    faults = []
    for _ in range(chance.randint(5, 12)):
        kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        faults.append(Fault(chance.random() * FAULT_SECONDS, kind, chance.choice(_NODES), _seconds(chance, kind)))
    return sorted(faults)


def _seconds(chance: random.Random, kind: Kind) -> float:
    """Some freeze for less time than it takes to be taken for dead, some for about so long, some for longer."""
    if kind in (Kind.FREEZE, Kind.BLOCK):
        return chance.choice((chance.uniform(0.2, 1.8), chance.uniform(1.8, 4.0), chance.uniform(4.0, 12.0)))
    return chance.uniform(0.1, 4.0)
