"""Nodes: the processes that share a database, and which of them has which session."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class NodeState(StrEnum):
    """`draining`: it gives its sessions to others and takes no more."""

    JOINED = "joined"
    DRAINING = "draining"


class NodeStatus(Record, frozen=True, kw_only=True):
    """A node of the cluster. `is_this` is whether it answers; `has_same_settings` as the one that does.

    `tags` are what sessions may need to be there.

    `lag_seconds` is how late its event loop is, `busy` how much of a processor it takes: averages of some ten seconds.
    """

    name: str
    address: str
    state: NodeState
    version: str
    sandbox: str
    serves: bool
    sessions: int
    started_at: float
    is_this: bool
    has_same_settings: bool
    lag_seconds: float = 0.0
    busy: float = 0.0
    tags: tuple[str, ...] = ()


class RayStatus(Record, frozen=True, kw_only=True):
    """The Ray that runs the nodes: how many there are to be, and how long ago it was last heard of.

    The number is chosen between `least` and `most`, by how late the nodes are and by `sessions_each`, which is how many
    sessions a node is to have. `why` is the reason of the last choice; empty if a person made it.
    """

    address: str
    wanted: int
    silent_seconds: float
    least: int = 0
    most: int = 0
    sessions_each: int = 0
    why: str = ""


class ClusterStatus(Record, frozen=True, kw_only=True):
    """The nodes by name. `waiting` is how many sessions have work and nobody yet; `ray` is set if Ray runs nodes.

    `unmet` are the tags that some of those need and no node has that takes sessions: each time all that one needs.
    """

    cluster_id: str
    min_version: str
    nodes: tuple[NodeStatus, ...]
    waiting: int
    ray: RayStatus | None = None
    unmet: tuple[tuple[str, ...], ...] = ()


class PlacedSession(Record, frozen=True, kw_only=True):
    """Which node has a session, and for the how manieth time some node has it; `node` is empty if none has."""

    session_id: str
    node: str
    address: str
    epoch: int
