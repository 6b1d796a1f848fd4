"""What there is to do so that as many nodes run as are wanted: decisions without I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from ai_whisperer.domain.cluster import NodeState
from ai_whisperer.domain.nodes import RunNode

SILENT_SECONDS: Final = 10.0
"""A keeper that was not heard of for so long is taken for gone: it is heard of each round."""
_NAME: Final = re.compile(r"ray-([1-9]\d*)")


class Kind(StrEnum):
    """`end`: the actor, with the process that it has. `remove`: a node that no actor has; it stops by itself then."""

    START = "start"
    DRAIN = "drain"
    RESTART = "restart"
    END = "end"
    REMOVE = "remove"


class Chore(NamedTuple):
    """One thing to do, for the node or the actor of that name."""

    kind: Kind
    name: str
    node: RunNode | None = None


def names_of(wanted: int) -> list[str]:
    return [f"ray-{number}" for number in range(1, wanted + 1)]


def is_name(name: str) -> bool:
    """Whether a node or an actor of this name is one that Ray runs."""
    return _NAME.fullmatch(name) is not None


def chores(wanted: int, actors: Collection[str], nodes: Sequence[RunNode]) -> list[Chore]:
    """What is to be done now. Nothing that has sessions is ended: it is drained first, and then found empty."""
    names = names_of(wanted)
    by_name = {each.name: each for each in nodes if is_name(each.name)}
    todo = [Chore(Kind.START, name) for name in names if name not in actors]
    for name in sorted({*by_name, *filter(is_name, actors)}):
        node = by_name.get(name)
        if name in names:
            todo += _again(name, node)
        else:
            todo.append(_away(name, node, has_actor=name in actors))
    return todo


def _again(name: str, node: RunNode | None) -> Iterator[Chore]:
    """One that is wanted and was drained, by a person, is started anew."""
    if node is not None and _is_empty(node):
        yield Chore(Kind.RESTART, name, node)


def _away(name: str, node: RunNode | None, *, has_actor: bool) -> Chore:
    end = Chore(Kind.END if has_actor else Kind.REMOVE, name, node)
    if node is None or not node.has_lock or _is_empty(node):
        return end
    return Chore(Kind.DRAIN, name, node)


def _is_empty(node: RunNode) -> bool:
    return node.state is NodeState.DRAINING and not node.sessions
