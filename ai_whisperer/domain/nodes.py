"""What nodes tell each other of themselves, and what each sees of the others."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.record import Record

TAG: Final = r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,63}\Z"
"""What can be a tag of a node."""
MOST_TAGS: Final = 32


class Absence(StrEnum):
    """Why the database does not have a node that joined: it was let go, or the database went back to before that."""

    LET_GO = "let go"
    NEVER_SEEN = "never seen"


class Draining(StrEnum):
    """What comes of it if a node is to be drained: it is, or nothing was changed.

    Then no other takes sessions, or none has the tags that a session needs which is there.
    """

    BEGUN = "draining"
    IS_LAST = "last"
    IS_NEEDED = "needed"


class Load(NamedTuple):
    """How late the event loop of a process is, and how much of a processor it takes; both averages of some seconds."""

    lag_seconds: float = 0.0
    busy: float = 0.0


IDLE: Final = Load()


class NodeCard(Record, frozen=True, kw_only=True):
    """How a process introduces itself.

    `address` is where clients and other nodes reach it, if it `serves`: then it takes sessions that have work and
    nobody. `settings` is a digest of those that all nodes should have in common. `strength` is how much its sandbox
    holds; `tags` are what sessions may need.
    """

    name: str
    address: str = ""
    version: str
    settings: str = ""
    sandbox: str = ""
    strength: int = 0
    serves: bool = False
    tags: tuple[str, ...] = ()


class SeenNode(Record, frozen=True, kw_only=True):
    """A node as another sees it: how often it has beaten, and whether the connection on which it does is there."""

    id: str
    name: str
    address: str
    version: str
    settings: str
    sandbox: str
    strength: int
    serves: bool
    state: NodeState
    beat: int
    started_at: float
    has_lock: bool
    load: Load = IDLE
    tags: tuple[str, ...] = ()


class Seen(Record, frozen=True, kw_only=True):
    """What a node sees each time it beats.

    `incarnation` changes when the database was started anew. `wanted` is how many sessions have work and nobody;
    `moving` are those of this node that are to go to another. `limits` are those of the server, as they are kept.
    `clock_ahead` is how many seconds the clock of the database is ahead of this machine's, if the answer came soon
    enough to tell.
    """

    nodes: tuple[SeenNode, ...]
    incarnation: str
    wanted: int = 0
    moving: tuple[str, ...] = ()
    limits: str = ""
    clock_ahead: float | None = None


class RunNode(Record, frozen=True, kw_only=True):
    """A node as whoever runs it sees it: what `SeenNode` says, and how many sessions it has."""

    host_id: str
    name: str
    address: str
    state: NodeState
    beat: int
    has_lock: bool
    sessions: int
    load: Load = IDLE
