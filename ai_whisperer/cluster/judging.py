"""Whether another node is gone, decided without a clock: by the beats that the judge itself could make meanwhile.

A database that stalls lets nobody beat, so nobody is condemned while it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ai_whisperer.domain.nodes import Seen, SeenNode

SILENT_BEATS: Final = 4
"""A node is gone if it has not beaten during so many beats of mine,"""
SILENT_BEATS_WITHOUT_LOCK: Final = 2
"""or during so many after the one that found its connection gone, of which the database tells at once."""


class Sighting(NamedTuple):
    """What is known of another node: its beat, and during how many of mine it has not changed.

    `locked_in` is the incarnation of the database in which its lock was seen. `without_lock` counts the beats since it
    was found gone in that one; a lock that was never seen, or that went with the database, tells nothing.
    """

    beat: int
    silent: int = 0
    locked_in: str = ""
    without_lock: int | None = None

    @property
    def is_gone(self) -> bool:
        without_lock = self.without_lock or 0
        return self.silent >= SILENT_BEATS or without_lock >= SILENT_BEATS_WITHOUT_LOCK


Sightings = Mapping[str, Sighting]
"""By the ids of the nodes."""


def looked(known: Sightings, seen: Seen, *, own_id: str, is_full_beat: bool = True) -> dict[str, Sighting]:
    """What is known of the others after a beat of mine that saw this.

    One that was made sooner than is usual counts only for those whose lock is gone.
    """
    others = (each for each in seen.nodes if each.id != own_id)
    return {each.id: _sighting(known.get(each.id), each, seen.incarnation, int(is_full_beat)) for each in others}


def forgiven(known: Sightings) -> dict[str, Sighting]:
    """What is known after a beat of mine that did not come through, or came late: what kept me kept others too.

    Who waits too long for the database lets its connection go, and the lock with it, to make another: that it is gone
    afterwards tells nothing until it was seen again.
    """
    return {host_id: Sighting(each.beat) for host_id, each in known.items()}


def gone(known: Sightings) -> list[tuple[str, int]]:
    """Those that are gone, with the last beat of each: one that has beaten since is not."""
    return [(host_id, sighting.beat) for host_id, sighting in known.items() if sighting.is_gone]


def has_ended(known: Sightings, host_id: str) -> bool:
    """Whether the process of one that is gone has ended: its connection has, and the database has not."""
    return known[host_id].without_lock is not None


def is_hurried(known: Sightings) -> bool:
    """Whether a node seems to have died, so that the next look is worth being taken sooner."""
    return any(sighting.without_lock is not None for sighting in known.values())


def _sighting(before: Sighting | None, node: SeenNode, incarnation: str, full_beats: int) -> Sighting:
    locked_in = incarnation if node.has_lock else before.locked_in if before is not None else ""
    has_lost_it = not node.has_lock and locked_in == incarnation
    if before is None or before.beat != node.beat:
        return Sighting(node.beat, 0, locked_in, 0 if has_lost_it else None)
    without_lock = None
    if has_lost_it:
        without_lock = 0 if before.without_lock is None else before.without_lock + 1
    return Sighting(node.beat, before.silent + full_beats, locked_in, without_lock)
