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


class ClusterStatus(Record, frozen=True, kw_only=True):
    """The nodes by name. `waiting` is how many sessions have work and nobody yet."""

    cluster_id: str
    min_version: str
    nodes: tuple[NodeStatus, ...]
    waiting: int


class PlacedSession(Record, frozen=True, kw_only=True):
    """Which node has a session, and for the how manieth time some node has it; `node` is empty if none has."""

    session_id: str
    node: str
    address: str
    epoch: int
