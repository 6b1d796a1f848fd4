"""The event loop of a replay: time stands still until it is told to go on, so that all happens in a chosen order.

Timers fire when they are let: a timer of the recorded session may have fired a moment late, after something else. What
is done for real takes real time.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

from ai_whisperer.replay.recording.turns import Schedule, Turns
from ai_whisperer.simulation.loop import RealFiles, SimulationLoop, SimulationStalledError

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

SLACK_SECONDS = 1e-5
"""Times of a recording are rounded."""


class ReplayLoop(SimulationLoop):
    """An event loop on virtual time. With a seed, what is ready runs in an order of the seed's choice.

    Timers wait until `fire_next` lets one go; what has a place in the schedule that is followed waits for its turn. If
    everything waits and nobody holds time, it goes on by itself.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._shuffles = seed is not None
        self._settling: list[asyncio.Future[None]] = []
        self._held: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._calls_under_way = 0
        self._turns = Turns()
        self._goes: asyncio.Handle | None = None
        selector = _Selector()
        super().__init__(seed or 0, selector)
        selector.loop = self

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if when <= self.time():
            self._ready.append(timer)  # type: ignore[attr-defined]
        else:
            heappush(self._held, (when, next(self._numbers), timer))
        return timer

    def settled(self) -> asyncio.Future[None]:
        """Is done when nothing is ready to run at this moment of virtual time."""
        waiter = self.create_future()
        self._settling.append(waiter)
        return waiter

    def fire_next(self, *, until: float) -> bool:
        """Let time go on to the next timer and fire it; False if there is none up to that time."""
        while self._held:
            when, _, timer = self._held[0]
            if timer.cancelled():
                heappop(self._held)
                continue
            if when > until:
                return False
            heappop(self._held)
            self.jump_to(when)
            self._ready.append(timer)  # type: ignore[attr-defined]
            return True
        return False

    def follow(self, schedule: Schedule | None) -> None:
        """From now on what is ready to run goes in this order; without one, as it comes."""
        self.let_all_go()
        self._turns.schedule = schedule

    def run_soon(self) -> bool:
        """Let one run that waits for its turn and tells nothing now; False if there is none."""
        return self._run(self._turns.take_first(soon=True))

    def run_first(self) -> bool:
        """Let the first run that waits for its turn, though others are to go first; False if nobody waits."""
        return self._run(self._turns.take_first())

    def let_all_go(self) -> None:
        """Nobody waits for a turn any more."""
        going = [] if self._goes is None else [self._goes]
        self._goes = None
        self._ready.extend([*going, *self._turns.take_all()])  # type: ignore[attr-defined]

    def _run(self, handle: asyncio.Handle | None) -> bool:
        self._goes = handle
        return handle is not None

    def _takes_turn(self) -> bool:
        """Whether somebody goes on whose turn it is, at the time of that turn."""
        found = self._turns.next()
        if found is None:
            return False
        handle, at = found
        if at > self.time() and (self.run_soon() or self.fire_next(until=at - SLACK_SECONDS)):
            return True
        self.jump_to(at)
        return self._run(self._turns.take(handle))

    def jump_to(self, at: float) -> None:
        """Let it be that time, if it is not later already, without firing a timer."""
        self._virtual_time = max(self._virtual_time, at)

    @contextmanager
    def for_real(self) -> Iterator[None]:
        """Within, something outside is waited for: time passes as it does there."""
        self._calls_under_way += 1
        try:
            yield
        finally:
            self._calls_under_way -= 1

    def end_for_real(self) -> None:
        """From now on time is real: threads that were used are waited for as they end."""
        self._calls_under_way += 1

    @property
    def has_calls_under_way(self) -> bool:
        return self._calls_under_way > 0

    def idle(self, timeout: float | None) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        if self._goes is None and ready:
            ready.extend(self._turns.sorted_out([ready.popleft() for _ in range(len(ready))]))
        if self._goes is not None:
            ready.appendleft(self._goes)
            self._goes = None
        elif ready:
            if self._shuffles:
                super().idle(timeout)
        elif self._takes_turn():
            pass
        elif self._settling:
            settling, self._settling = self._settling, []
            for waiter in settling:
                if not waiter.done():
                    waiter.set_result(None)
        elif not (self.run_soon() or self.run_first() or self.fire_next(until=float("inf"))):
            raise SimulationStalledError

    def wait_for_real(self, real: selectors.BaseSelector) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for files; what is due meanwhile is done."""
        if self._ready:  # type: ignore[attr-defined]
            return real.select(0)
        due_in = max(self._held[0][0] - self.time(), 0.0) if self._held else None
        begun = time.monotonic()
        found = real.select(due_in)
        now = self.time() + time.monotonic() - begun
        if not found:
            self.fire_next(until=now)
        self.jump_to(now)
        return found


class _Selector(RealFiles):
    """Waits for files only while something is done for real; else nothing is waited for."""

    loop: ReplayLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.loop.has_calls_under_way:
            self.loop.let_all_go()
            return self.loop.wait_for_real(self.real)
        self.loop.idle(timeout)
        return []


def run_virtually(main: Coroutine[Any, Any, _T], *, seed: int | None = None) -> _T:
    """Run a coroutine on a loop of its own. Not to be called within one: see `asyncio.to_thread`."""
    loop = ReplayLoop(seed)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            return runner.run(main)
        finally:
            loop.end_for_real()
