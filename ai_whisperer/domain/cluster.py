"""Nodes: the processes that share a database, and which of them has which session."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class NodeState(StrEnum):
    """`draining`: it gives its sessions to others and takes no more."""

    JOINED = "joined"
    DRAINING = "draining"


class NodeStatus(Record, frozen=True, kw_only=True):
    """A node of the cluster. `is_this` is whether it answers; `has_same_settings` as the one that does."""

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


class RayStatus(Record, frozen=True, kw_only=True):
    """The Ray that runs the nodes: how many there are to be, and how long ago it was last heard of."""

    address: str
    wanted: int
    silent_seconds: float


class ClusterStatus(Record, frozen=True, kw_only=True):
    """The nodes by name. `waiting` is how many sessions have work and nobody yet; `ray` is set if Ray runs nodes."""

    cluster_id: str
    min_version: str
    nodes: tuple[NodeStatus, ...]
    waiting: int
    ray: RayStatus | None = None


class PlacedSession(Record, frozen=True, kw_only=True):
    """Which node has a session, and for the how manieth time some node has it; `node` is empty if none has."""

    session_id: str
    node: str
    address: str
    epoch: int
