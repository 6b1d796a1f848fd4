"""What happens to nodes and their database in a run, and when: drawn from a seed, so that it can be repeated."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

NODES = ("a", "b", "c")
SESSIONS = ("s0", "s1", "s2", "unattended")
"""Of the last nobody asks anything once its tasks are given: it has to be taken up by itself."""
TASKS = 3
_MOST_ACTS = 5
_AT_ONCE = 0.35
_LONGEST_SECONDS = 4.0
_MOST_BYTES = 20_000
_SURELY_ALIVE_SECONDS = 1.2
"""A node that is frozen or cut off for no longer in all must not be taken for dead."""


class Kind(StrEnum):
    """What is done."""

    FREEZE = "freeze"
    KILL = "kill"
    STOP = "stop"
    DRAIN = "drain"
    MOVE = "move"
    CUT = "cut"
    CUT_AFTER = "cut after"
    REFUSE = "refuse"
    BLACKHOLE = "blackhole"
    DELAY = "delay"
    RESTART_DATABASE = "restart database"
    CRASH_DATABASE = "crash database"
    STALL_DATABASE = "stall database"


OF_DATABASE = (Kind.RESTART_DATABASE, Kind.CRASH_DATABASE, Kind.STALL_DATABASE)
CONDEMNING = (Kind.FREEZE, Kind.BLACKHOLE, Kind.DELAY)
"""What may let others take a node for dead that lives, if it lasts."""
_WEIGHTS = {
    Kind.FREEZE: 4,
    Kind.KILL: 4,
    Kind.STOP: 1,
    Kind.DRAIN: 2,
    Kind.MOVE: 2,
    Kind.CUT: 3,
    Kind.CUT_AFTER: 4,
    Kind.REFUSE: 2,
    Kind.BLACKHOLE: 3,
    Kind.DELAY: 2,
    Kind.RESTART_DATABASE: 1,
    Kind.CRASH_DATABASE: 2,
    Kind.STALL_DATABASE: 1,
}


class Act(NamedTuple):
    """One fault: so many seconds after the work began, for so long. What it does not need is empty."""

    at: float
    kind: Kind
    node: str = ""
    seconds: float = 0.0
    session: str = ""
    bytes: int = 0
    delay_seconds: float = 0.0

    def __str__(self) -> str:
        told = [f"{self.at:5.2f} {self.kind}", self.session, self.node]
        if self.seconds:
            told.append(f"for {self.seconds:.2f} s")
        if self.bytes:
            told.append(f"after {self.bytes} bytes")
        if self.delay_seconds:
            told.append(f"by {self.delay_seconds:.2f} s")
        return " ".join(each for each in told if each)


class Schedule(NamedTuple):
    """The nodes of a run, and all that happens to them."""

    seed: int
    nodes: tuple[str, ...]
    acts: tuple[Act, ...]

    def may_condemn(self, node: str) -> bool:
        """Whether others may take the node for dead: it is without a connection, or cannot beat, or only late.

        One whose connection is cut counts as ended sooner than one that is silent, so it must get another at once.
        """
        acts = [act for act in self.acts if act.node == node]
        kinds = {act.kind for act in acts}
        away = sum(act.seconds for act in acts if act.kind in CONDEMNING)
        is_cut_off = bool(kinds & {Kind.CUT, Kind.CUT_AFTER}) and away > 0
        return away > _SURELY_ALIVE_SECONDS or is_cut_off or Kind.REFUSE in kinds

    def __str__(self) -> str:
        acts = "\n".join(f"  {act}" for act in self.acts)
        return f"seed {self.seed}, nodes {', '.join(self.nodes)}:\n{acts}"


def drawn(seed: int) -> Schedule:
    """The schedule of a seed."""
    chance = random.Random(seed)
    nodes = NODES[: chance.choice((2, 3, 3))]
    acts = []
    at = chance.uniform(0.1, 0.6)
    for _ in range(chance.randint(2, _MOST_ACTS)):
        acts.append(_act(chance, round(at, 2), nodes))
        if chance.random() > _AT_ONCE:
            at += chance.uniform(0.2, 1.5)
    return Schedule(seed, nodes, tuple(acts))


def _act(chance: random.Random, at: float, nodes: tuple[str, ...]) -> Act:
    (kind,) = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    act = Act(at, kind, seconds=round(chance.uniform(0.3, _LONGEST_SECONDS), 2))
    if kind in OF_DATABASE:
        return act._replace(seconds=act.seconds if kind is Kind.STALL_DATABASE else chance.choice((0.0, 1.0, 3.0)))
    act = act._replace(node=chance.choice(nodes))
    match kind:
        case Kind.MOVE:
            return act._replace(session=chance.choice(SESSIONS), seconds=0.0)
        case Kind.CUT:
            return act._replace(seconds=0.0)
        case Kind.CUT_AFTER:
            return act._replace(bytes=chance.randint(1, _MOST_BYTES), seconds=0.0)
        case Kind.DELAY:
            return act._replace(delay_seconds=round(chance.uniform(0.02, 0.4), 2))
        case _:
            return act
