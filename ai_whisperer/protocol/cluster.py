"""The methods `cluster.*`: the nodes that share a database, and which of them has which session."""

from __future__ import annotations

from ai_whisperer.domain.cluster import ClusterStatus, PlacedSession
from ai_whisperer.protocol.method import Effect, InSession, Method, Params


class GetClusterStatus(Params, frozen=True, kw_only=True):
    """The nodes that share the database of this server, and how many sessions each has."""


class DrainNode(Params, frozen=True, kw_only=True):
    """Let a node give all its sessions to others, and take no more until it is started again.

    Only the principal `local` may. The steps under way may finish, as when a server ends; `cluster.status` shows how
    many sessions are left. The last node that takes sessions, or that has the tags which one of its sessions needs, is
    drained only by `force`: they wait for another then.
    """

    node: str
    force: bool = False


class MoveSession(InSession, frozen=True, kw_only=True):
    """Let a session go to that node. The answer comes when it is there, or says where it is if that takes long.

    Only the principal `local` may.
    """

    node: str


GET_CLUSTER_STATUS = Method("cluster.status", GetClusterStatus, ClusterStatus, effect=Effect.READS)
DRAIN_NODE = Method("cluster.drain", DrainNode, ClusterStatus, effect=Effect.REPEATS)
MOVE_SESSION = Method("cluster.move", MoveSession, PlacedSession, effect=Effect.REPEATS)
