"""One heap of due times for all agents of a session. Nothing polls."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from ai_whisperer.clock import Clock

_LONGEST_NAP_SECONDS = 60.0
"""The event loop's time and the time of day drift apart when a machine sleeps or its clock is set: look again."""


_SLACK = 64
"""So many entries that were cancelled may lie about; more are swept out."""


class Scheduler:
    """Calls back when a time of day has come; at once if it is past. After `close` nothing is called back any more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, str]] = []
        self._due: dict[str, tuple[int, Callable[[], None]]] = {}
        self._count = 0
        self._handle: asyncio.TimerHandle | None = None
        self._closed = False

    def at(self, due_at: float, key: str, callback: Callable[[], None]) -> None:
        """Call back at that time. The key names the entry; a new time for the same key replaces the old one."""
        if self._closed:
            return  # what ends while the session closes may still ask for a time: the next session will see to it
        self._count += 1
        self._due[key] = (self._count, callback)
        heapq.heappush(self._heap, (due_at, self._count, key))
        if self._heap[0][1] == self._count:
            self._arm()

    def cancel(self, key: str) -> None:
        self._due.pop(key, None)
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [entry for entry in self._heap if self._due.get(entry[2], (0,))[0] == entry[1]]
            heapq.heapify(self._heap)

    def close(self) -> None:
        self._closed = True
        self._due.clear()
        self._heap.clear()
        self._disarm()

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        self._disarm()
        while self._heap and self._due.get(self._heap[0][2], (0,))[0] != self._heap[0][1]:
            heapq.heappop(self._heap)
        if self._heap:
            nap = min(max(self._heap[0][0] - self._clock.now(), 0.0), _LONGEST_NAP_SECONDS)
            self._handle = asyncio.get_running_loop().call_later(nap, self._fire)

    def _fire(self) -> None:
        self._handle = None
        now = self._clock.now()
        try:
            while self._heap and self._heap[0][0] <= now:
                _, number, key = heapq.heappop(self._heap)
                if self._due.get(key, (0,))[0] == number:
                    self._due.pop(key)[1]()
        finally:
            self._arm()  # one callback that fails must not keep the others from their time
