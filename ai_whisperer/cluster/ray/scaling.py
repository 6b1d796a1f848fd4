"""How many nodes there should be, and which session should go elsewhere: decisions without I/O.

A node lags if its event loop is late. A session is at one node, so another node helps only one that has several: those
are moved to where there is room, one after the other, and a node is added when there is no room anywhere. One is taken
away after a while in which the others could have done everything, and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ai_whisperer.cluster.ray.chores import names_of
from ai_whisperer.domain.cluster import NodeState, RayStatus
from ai_whisperer.domain.nodes import RunNode

LAGGING_SECONDS: Final = 0.2
"""A node whose event loop is so late, on average, lags;"""
CALM_SECONDS: Final = 0.05
"""one whose event loop is less late than this,"""
CALM_BUSY: Final = 0.5
"""and that takes less of a processor, has room for more."""
MOST_BUSY: Final = 0.8
"""A node that takes no more of a processor is not late yet."""
CALM_SESSIONS: Final = 0.8
"""So much of the sessions that nodes are to have leaves room as well."""
OUT_AFTER_SECONDS: Final = 10.0
IN_AFTER_SECONDS: Final = 300.0
MOVE_AFTER_SECONDS: Final = 10.0
NOT_AGAIN_SECONDS: Final = 1_800.0
"""So long a number of nodes with which one lagged is not tried again."""


class Watch(NamedTuple):
    """What was seen so far: since when there is too much or too little to do, and with which number a node lagged.

    `moved_at` is when the last session was sent elsewhere. All by the same clock, which only rises. `host_ids` are the
    nodes at work: one that was started again is another, which has not shown yet how much it has to do.
    """

    crowded_since: float | None = None
    idle_since: float | None = None
    too_few: int = 0
    too_few_until: float = 0.0
    moved_at: float | None = None
    host_ids: frozenset[str] = frozenset()


class Move(NamedTuple):
    """A session of one node, by its id, goes to another, by its name."""

    host_id: str
    name: str


class Choice(NamedTuple):
    """How many nodes there are to be, and why if that is another number; a session that goes elsewhere, if one does."""

    wanted: int
    watch: Watch
    why: str = ""
    move: Move | None = None


def choose(ray: RayStatus, nodes: Sequence[RunNode], waiting: int, watch: Watch, now: float) -> Choice:
    """What is to be done about the load of the nodes that are wanted. `waiting` sessions have nobody yet.

    Between the same numbers as before nothing changes unless it was so for a while, and all nodes have joined.
    """
    within = min(max(ray.wanted, ray.least), ray.most)
    if within != ray.wanted or ray.least == ray.most:
        return Choice(within, Watch())
    at_work = [each for each in nodes if each.state is NodeState.JOINED and each.has_lock]
    move = _move(at_work)
    crowd = "" if len(at_work) < ray.wanted else _crowd(ray, at_work, waiting, can_move=move is not None)
    is_idle = len(at_work) >= ray.wanted and _is_idle(ray, at_work, waiting)
    may_be_fewer = ray.wanted > ray.least and (now >= watch.too_few_until or ray.wanted - 1 > watch.too_few)
    host_ids = frozenset(each.host_id for each in at_work)
    idle_since = watch.idle_since if host_ids <= watch.host_ids else None  # or else one has just been started
    watch = watch._replace(
        crowded_since=_since(watch.crowded_since, now) if crowd and ray.wanted < ray.most else None,
        idle_since=_since(idle_since, now) if is_idle and may_be_fewer else None,
        host_ids=host_ids,
    )
    if watch.crowded_since is not None and now - watch.crowded_since >= OUT_AFTER_SECONDS:
        for_sessions = _for_sessions(ray, at_work, waiting)
        if for_sessions > ray.wanted:
            return Choice(min(for_sessions, ray.most), watch._replace(crowded_since=None), crowd)
        return Choice(ray.wanted + 1, Watch(too_few=ray.wanted, too_few_until=now + NOT_AGAIN_SECONDS), crowd)
    if watch.idle_since is not None and now - watch.idle_since >= IN_AFTER_SECONDS:
        kept = watch._replace(idle_since=None)
        return Choice(ray.wanted - 1, kept, f"{IN_AFTER_SECONDS / 60:g} minutes with little to do")
    if move is None or (watch.moved_at is not None and now - watch.moved_at < MOVE_AFTER_SECONDS):
        return Choice(ray.wanted, watch)
    return Choice(ray.wanted, watch._replace(moved_at=now), move=move)


def _crowd(ray: RayStatus, nodes: Sequence[RunNode], waiting: int, *, can_move: bool) -> str:
    """Why another node would help; empty if it would not."""
    if _for_sessions(ray, nodes, waiting) > ray.wanted:
        return f"{_sessions(nodes, waiting):,} sessions, {ray.sessions_each:,} for each node"
    latest = _latest(nodes)
    if latest is None or can_move:
        return ""
    return f"{latest.name} was {latest.load.lag_seconds:.2f} s late, and no other node had room"


def _is_idle(ray: RayStatus, nodes: Sequence[RunNode], waiting: int) -> bool:
    """Whether one node less could do everything, with room, even if all that the last one does went to one other."""
    left = ray.wanted - 1
    others = max((each.load.busy for each in nodes if each.name in names_of(left)), default=0.0)
    last = sum(each.load.busy for each in nodes if each.name not in names_of(left))
    return (
        all(each.load.lag_seconds < CALM_SECONDS for each in nodes)
        and sum(each.load.busy for each in nodes) <= CALM_BUSY * left
        and last + others <= MOST_BUSY
        and _sessions(nodes, waiting) <= CALM_SESSIONS * ray.sessions_each * left
    )


def _move(nodes: Sequence[RunNode]) -> Move | None:
    """From the node that lags most to the one with the fewest sessions of those that have room, if they are fewer."""
    latest = _latest(nodes)
    calm = [each for each in nodes if each.load.lag_seconds < CALM_SECONDS and each.load.busy < CALM_BUSY]
    if latest is None or not calm:
        return None
    emptiest = min(calm, key=lambda each: (each.sessions, each.name))
    return Move(latest.host_id, emptiest.name) if emptiest.sessions + 1 < latest.sessions else None


def _latest(nodes: Sequence[RunNode]) -> RunNode | None:
    """The node that lags most, of those that have more than one session."""
    lagging = [each for each in nodes if each.load.lag_seconds >= LAGGING_SECONDS and each.sessions > 1]
    return max(lagging, key=lambda each: each.load.lag_seconds, default=None)


def _for_sessions(ray: RayStatus, nodes: Sequence[RunNode], waiting: int) -> int:
    return -(-_sessions(nodes, waiting) // ray.sessions_each)


def _sessions(nodes: Sequence[RunNode], waiting: int) -> int:
    return sum(each.sessions for each in nodes) + waiting


def _since(before: float | None, now: float) -> float:
    return now if before is None else before
