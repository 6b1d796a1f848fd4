"""Makes a schedule that fails small: fewer faults, shorter ones, and as plain an interleaving as still fails.

`shrunk` knows nothing of universes: it is given a schedule and a question, whether another one fails in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from ai_whisperer.storm.faults import (
    AnyFault,
    Interleaving,
    Kill,
    LatePerson,
    Schedule,
    SlowCommit,
    SlowModel,
    SlowTool,
)

MOST_TRIES = 300
_ALL_CHOICES = 1 << 20
"""More than any universe has: where the search for the last one that matters begins."""
_SHORTER_SECONDS = (0.1, 1.0, 5.0, 30.0)

Fails = Callable[[Schedule], bool]


def shrunk(schedule: Schedule, fails: Fails, *, most_tries: int = MOST_TRIES) -> Schedule:
    """A schedule that still fails, as small as so many tries make it. The one that is given is known to fail."""
    smaller = _Shrinking(schedule, fails, most_tries)
    before = None
    while before != smaller.best and smaller.tries_left:
        before = smaller.best
        smaller.remove_faults()
        smaller.simplify_interleaving()
        smaller.shorten_faults()
    return smaller.best


class _Shrinking:
    """The smallest schedule so far, and what was tried."""

    def __init__(self, schedule: Schedule, fails: Fails, most_tries: int) -> None:
        self.best = schedule
        self.tries_left = most_tries
        self._fails = fails
        self._tried: set[Schedule] = {schedule}

    def _try(self, candidate: Schedule) -> bool:
        """Take it if it fails. What was tried once is not tried again."""
        if candidate in self._tried or not self.tries_left:
            return False
        self._tried.add(candidate)
        self.tries_left -= 1
        if self._fails(candidate):
            self.best = candidate
            return True
        return False

    def remove_faults(self) -> None:
        """Leave out halves, then quarters, down to single faults, as long as what is left fails: delta debugging."""
        parts = 2
        while self.best.faults and self.tries_left:
            faults = tuple(self.best.faults)
            if any(self._try(replace(self.best, faults=rest)) for rest in _without_parts(faults, parts)):
                parts = max(parts - 1, 2)
            elif parts < len(faults):
                parts = min(parts * 2, len(faults))
            else:
                break

    def simplify_interleaving(self) -> None:
        """No seed if that fails, else the fewest choices that it has to make."""
        interleaving = self.best.interleaving
        if interleaving.is_plain or self._try(replace(self.best, interleaving=Interleaving())):
            return
        low, high = 0, interleaving.choices if interleaving.choices is not None else _ALL_CHOICES
        while high - low > 1 and self.tries_left:
            middle = (low + high) // 2 if low else max(high // 16, 1)
            if self._try(replace(self.best, interleaving=replace(interleaving, choices=middle))):
                high = middle
            else:
                low = middle

    def shorten_faults(self) -> None:
        """The shortest of a few lengths of time for each, and no time at all for which the process is down."""
        for at, fault in enumerate(self.best.faults):
            for shorter in _shorter(fault):
                faults = (*self.best.faults[:at], shorter, *self.best.faults[at + 1 :])
                if self._try(replace(self.best, faults=faults)):
                    break


def _without_parts(faults: tuple[AnyFault, ...], parts: int) -> Iterator[tuple[AnyFault, ...]]:
    """What is left without one of so many parts, for each of them."""
    size = -(-len(faults) // parts)
    for start in range(0, len(faults), size):
        yield faults[:start] + faults[start + size :]


def _shorter(fault: AnyFault) -> Iterator[AnyFault]:
    if isinstance(fault, Kill):
        if fault.down_seconds:
            yield replace(fault, down_seconds=0.0)
    elif isinstance(fault, SlowTool):
        if fault.before_seconds and fault.after_seconds:
            yield replace(fault, after_seconds=0.0)
            yield replace(fault, before_seconds=0.0)
        else:
            field = "before_seconds" if fault.before_seconds else "after_seconds"
            yield from (replace(fault, **{field: each}) for each in _below(getattr(fault, field)))
    elif isinstance(fault, SlowModel | SlowCommit | LatePerson):
        yield from (replace(fault, seconds=each) for each in _below(fault.seconds))


def _below(seconds: float) -> Sequence[float]:
    return [each for each in _SHORTER_SECONDS if each < seconds]
