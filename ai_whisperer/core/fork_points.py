"""After which entries of its log a session can be forked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from ai_whisperer.errors import RecordingError

GONE = frozenset({"agent.deleted", "thread.deleted", "room.deleted", "session.pruned", "log.erased"})
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
        self._first: int | None = None
        self._last: Told | None = None
        self._end: Told | None = None
        self.points: list[int] = []

    def take(self, entries: Iterable[Told]) -> None:
        """The next entries. The last one is a point only if what follows it says so, or `end`."""
        for entry in entries:
            before = self._last
            if self._first is None:
                self._first = entry.seq
            if before is not None and (before.cause, before.at) != (entry.cause, entry.at):
                self.end()
            if self._end is None and (entry.name in GONE or self._first > 1):
                self._end = entry
            if entry.params.get("tool") is not None and entry.params["tool"] not in self._inside:
                if entry.name == "step.started":
                    self._under_way.add(entry.params["stepId"])
                elif entry.name == "step.finished":
                    self._under_way.discard(entry.params["stepId"])
            self._last = entry

    def end(self) -> None:
        """Nothing follows for now."""
        if self._last is not None and not self._under_way and self._end is None:
            self.points.append(self._last.seq)

    @property
    def is_over(self) -> bool:
        """Whether no more are to come: something was deleted, or the log does not begin at its beginning."""
        return self._end is not None

    def has_after(self, seq: int, *, count: int) -> bool:
        """Whether so many of the points come after that entry."""
        return len(self.points) - bisect_right(self.points, seq) >= count

    def refusal(self, at: int) -> RecordingError:
        """Why the session cannot be forked at an entry, and where it can; `data` has the nearest numbers."""
        near = nearest_points(self.points, at, limit=2)
        end = self._end
        if self._last is None or at > self._last.seq:
            why = f"its log ends at {self._last.seq if self._last is not None else 0}"
        elif end is not None and self._first != 1:
            why = f"its log begins at {self._first}: what came before was pruned, and it is played from the beginning"
        elif end is not None and end.seq <= at:
            why = f"entry {end.seq} tells that something was deleted ({end.name}), and what that was is not kept"
        else:
            why = "that is in the middle of a step"
        error = RecordingError(
            f"The session cannot be forked at {at}: {why}. The nearest numbers that work: "
            f"{' and '.join(map(str, near)) or 'none'}."
        )
        error.data = {"points": near}
        return error


def nearest_points(points: Sequence[int], near: int, *, limit: int) -> list[int]:
    """Those of the points that are around an entry, in order: as many up to it as after it, if there are."""
    place = bisect_right(points, near)
    before = min(max((limit + 1) // 2, limit - (len(points) - place)), place)
    return list(points[place - before : place - before + limit])
