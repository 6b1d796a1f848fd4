"""After which entries of its log a session can be forked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

_GONE = frozenset({"agent.deleted", "thread.deleted", "room.deleted", "session.pruned", "log.erased"})
"""What these take away is not kept, so nothing from there on can be played again."""


class Told(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> float: ...
    @property
    def name(self) -> str: ...
    @property
    def cause(self) -> str: ...
    @property
    def params(self) -> dict[str, Any]: ...


class ForkPoints:
    """Takes the entries of a log from its beginning and finds where it can be forked.

    That is nowhere within a decision, nor while a tool with effects outside is at work, nor after something was
    deleted. `inside` are the tools without such effects.
    """

    def __init__(self, inside: Collection[str]) -> None:
        self._inside = inside
        self._under_way: set[str] = set()
        self._last: Told | None = None
        self.points: list[int] = []
        self.is_over = False

    def take(self, entries: Iterable[Told]) -> None:
        """The next entries. The last one is a point only if what follows it says so, or `end`."""
        for entry in entries:
            before = self._last
            if before is not None and not self.is_over and (before.cause, before.at) != (entry.cause, entry.at):
                self.end()
            self.is_over = self.is_over or entry.name in _GONE
            if entry.params.get("tool") is not None and entry.params["tool"] not in self._inside:
                if entry.name == "step.started":
                    self._under_way.add(entry.params["stepId"])
                elif entry.name == "step.finished":
                    self._under_way.discard(entry.params["stepId"])
            self._last = entry

    def end(self) -> None:
        """Nothing follows for now."""
        if self._last is not None and not self._under_way and not self.is_over:
            self.points.append(self._last.seq)

    def has_after(self, seq: int, *, count: int) -> bool:
        """Whether so many of the points come after that entry."""
        return len(self.points) - bisect_right(self.points, seq) >= count


def nearest_points(points: Sequence[int], near: int, *, limit: int) -> list[int]:
    """Those of the points that are around an entry, in order: as many up to it as after it, if there are."""
    place = bisect_right(points, near)
    before = min(max((limit + 1) // 2, limit - (len(points) - place)), place)
    return list(points[place - before : place - before + limit])
