"""Heaps of due times for all agents of a session: one by the session's time, one by the wall clock. Nothing polls."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context, copy_context

from ai_whisperer.runtime.session.clock import SessionClock

_LONGEST_NAP_SECONDS = 60.0
"""The event loop stands still while a machine is suspended, and the wall clock may be set: look again."""


_SLACK = 64
"""So many entries that were cancelled may lie about; more are swept out."""


class Timers:
    """Calls back when a time has come; at once if it is past. After `close` nothing is called back any more."""

    def __init__(
        self, clock: SessionClock, *, on_look: Callable[[], None] = lambda: None, context: Context | None = None
    ) -> None:
        """`on_look` is called before what is due, once a minute at least while there is something to come.

        What is called back runs in that context, not in that of whoever happened to set the next time.
        """
        self._steady = _DueTimes(clock.now)
        self._wall = _DueTimes(clock.wall)
        self._on_look = on_look
        self._count = 0
        self._context = context or copy_context()
        self._handle: asyncio.TimerHandle | None = None
        self._closed = False
        self._firing = False

    def at(self, due_at: float, key: str, callback: Callable[[], None]) -> None:
        """Call back at that time of the session: for what lasts so long, however the wall clock is set.

        The key names the entry; a new time for the same key replaces the old one.
        """
        self._wall.cancel(key)
        self._add(self._steady, due_at, key, callback)

    def at_wall(self, due_at: float, key: str, callback: Callable[[], None]) -> None:
        """Call back when the wall clock shows that time or a later one; a wall clock that was set is noticed in a
        minute at most."""
        self._steady.cancel(key)
        self._add(self._wall, due_at, key, callback)

    def cancel(self, key: str) -> None:
        self._steady.cancel(key)
        self._wall.cancel(key)

    def close(self) -> None:
        self._closed = True
        self._steady.clear()
        self._wall.clear()
        self._disarm()

    @property
    def keys(self) -> list[str]:
        """The names of what is to come."""
        return [*self._steady.keys, *self._wall.keys]

    def due(self) -> list[str]:
        """The names of what is due and was not called back yet, the first one first."""
        return [*self._steady.due(), *self._wall.due()]

    @property
    def counts(self) -> bool:
        """Whether anything is due by the session's time, or is being called back."""
        return self._firing or len(self._steady) > 0

    def _add(self, times: _DueTimes, due_at: float, key: str, callback: Callable[[], None]) -> None:
        if self._closed:
            return  # what ends while the session closes may still ask for a time: the next session will see to it
        self._count += 1
        if times.add(due_at, self._count, key, callback):
            self._arm()

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        self._disarm()
        nap = min(self._steady.next_in(), self._wall.next_in())
        if nap < _NEVER:
            seconds = min(max(nap, 0.0), _LONGEST_NAP_SECONDS)
            self._handle = asyncio.get_running_loop().call_later(seconds, self._fire, context=self._context)

    def _fire(self) -> None:
        self._handle = None
        try:
            self._on_look()
            self._firing = True
            self._steady.fire()
            self._wall.fire()
        finally:
            self._firing = False
            self._arm()  # one callback that fails must not keep the others from their time


_NEVER = float("inf")


class _DueTimes:
    """One heap of what is due, by one clock."""

    __slots__ = ("_due", "_heap", "_now")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heap: list[tuple[float, int, str]] = []
        self._due: dict[str, tuple[int, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return len(self._due)

    @property
    def keys(self) -> list[str]:
        return list(self._due)

    def add(self, due_at: float, number: int, key: str, callback: Callable[[], None]) -> bool:
        """Whether it is the first that is due now."""
        self._drop_cancelled()  # the clock may have been set since: those tell nothing about what is first
        self._due[key] = (number, callback)
        heapq.heappush(self._heap, (due_at, number, key))
        return self._heap[0][1] == number

    def cancel(self, key: str) -> None:
        if self._due.pop(key, None) is not None and len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [entry for entry in self._heap if self._is_live(entry)]
            heapq.heapify(self._heap)

    def clear(self) -> None:
        self._due.clear()
        self._heap.clear()

    def next_in(self) -> float:
        """In how many seconds the first is due."""
        self._drop_cancelled()
        return self._heap[0][0] - self._now() if self._heap else _NEVER

    def fire(self) -> None:
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_live(entry):
                self._due.pop(entry[2])[1]()

    def due(self) -> list[str]:
        now = self._now()
        return [entry[2] for entry in sorted(self._heap) if entry[0] <= now and self._is_live(entry)]

    def _drop_cancelled(self) -> None:
        """Let the first of the heap be one that is to come."""
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)

    def _is_live(self, entry: tuple[float, int, str]) -> bool:
        return self._due.get(entry[2], (0,))[0] == entry[1]
