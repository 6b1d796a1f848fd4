"""Who takes how much, and who may join: decisions without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import NodeCard, Seen, SeenNode
from ai_whisperer.errors import StoreVersionError

OLDEST_TOGETHER: Final = "0.1.0"
"""The oldest version that this one can share a database with."""


def fair_share(wanted: int, takers: int) -> int:
    """How many of the sessions that nobody has one node takes at a time: all of them together take all."""
    return -(-wanted // max(takers, 1))


def own_share(seen: Seen, own_id: str) -> int:
    """How many sessions this node should take now; none unless it serves and is not being drained."""
    takers = [each for each in seen.nodes if each.serves and each.state is NodeState.JOINED]
    return fair_share(seen.wanted, len(takers)) if any(each.id == own_id for each in takers) else 0


def is_draining(seen: Seen, own_id: str) -> bool:
    return any(each.id == own_id and each.state is NodeState.DRAINING for each in seen.nodes)


def raised_min_version(card: NodeCard, others: Iterable[SeenNode], min_version: str) -> str:
    """The oldest version that may join once this node has; raises `StoreVersionError` if it must not."""
    if _parts(card.version) < _parts(min_version):
        raise StoreVersionError(
            f"The cluster takes nodes of version {min_version} or newer, and this is {card.version}. Upgrade AI "
            "Whisperer here; nothing was changed."
        )
    older = [each for each in others if _parts(each.version) < _parts(OLDEST_TOGETHER)]
    if older:
        named = ", ".join(f"'{each.name}' ({each.version})" for each in older)
        raise StoreVersionError(
            f"Version {card.version} shares a database with {OLDEST_TOGETHER} or newer, and there are older nodes: "
            f"{named}. Drain and upgrade those first; nothing was changed."
        )
    return max(min_version, OLDEST_TOGETHER, key=_parts)


def with_other_settings(card: NodeCard, others: Iterable[SeenNode]) -> Sequence[str]:
    """The names of the serving nodes whose settings are not those of this one."""
    return [each.name for each in others if card.serves and each.serves and each.settings != card.settings]


def _parts(version: str) -> tuple[int, ...]:
    numbers = (part for part in version.split("+")[0].split("."))
    return tuple(int("".join(filter(str.isdigit, each)) or 0) for each in numbers)
