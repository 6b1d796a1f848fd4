"""A seeded event loop on virtual time: a day passes in a moment, and a seed replays every interleaving.

Time moves only when nothing is ready to run, straight to the next timer. What is ready runs in an order that the seed
decides, so that code which relies on the order of callbacks shows itself.
"""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")

EPOCH = 1_800_000_000.0
"""The time of day at which simulations begin."""


class SimulationStalledError(Exception):
    """Nothing is ready, no timer is set, and the program still waits: it would wait for ever."""


class SimulationLoop(asyncio.SelectorEventLoop):
    """An event loop without a real clock and, unless it is given a selector that has them, without real sockets."""

    def __init__(self, seed: int, selector: selectors.BaseSelector | None = None) -> None:
        self._virtual_time = 0.0
        self._shuffler = random.Random(seed)  # noqa: S311 - chance that can be repeated is the purpose
        super().__init__(selector or _VirtualSelector(self))

    def time(self) -> float:
        return self._virtual_time

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What a loop that is closed leaves behind died with it, and is nobody's fault."""
        if not self.is_closed():
            super().call_exception_handler(context)

    def idle(self, timeout: float | None) -> None:
        """Called when the loop looks for something to do: shuffle what is ready, or let time pass."""
        ready = self._ready  # type: ignore[attr-defined]
        if ready:
            shuffled = list(ready)
            self._shuffler.shuffle(shuffled)
            ready.clear()
            ready.extend(shuffled)
        elif timeout is None:
            raise SimulationStalledError
        else:
            self._virtual_time += max(timeout, 0.0)


class _VirtualSelector(selectors.BaseSelector):
    """Says that no file is ever ready; waiting is the passing of virtual time."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.idle(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class RealFiles(selectors.BaseSelector):
    """Knows real files. What waiting for them means is for who has time in hand: see `select`."""

    def __init__(self) -> None:
        self.real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self.real.get_map()

    def close(self) -> None:
        self.real.close()


class VirtualClock:
    """The time of day on the time of the event loop that runs; goes on over several loops. It can be set."""

    def __init__(self, start: float = EPOCH, *, set_by: float = 0.0) -> None:
        self._start = start
        self.set_by = set_by
        """How far it was set, forward or back, since the simulation began."""

    def now(self) -> float:
        return self.elapsed() + self.set_by

    def elapsed(self) -> float:
        return self._start + asyncio.get_running_loop().time()

    def at(self, loop_seconds: float) -> float:
        """What it shows when the loop has run for so long; also outside of one."""
        return self._start + loop_seconds + self.set_by

    def set(self, seconds: float) -> None:
        """Set the clock forward by so many seconds, or back if they are negative."""
        self.set_by += seconds

    def later(self, seconds: float) -> VirtualClock:
        """A clock for the next loop, which begins that much later."""
        return VirtualClock(self._start + seconds, set_by=self.set_by)


def simulate(main: Coroutine[Any, Any, _T], *, seed: int = 0) -> _T:
    """Run a coroutine on a fresh `SimulationLoop` and return its result."""
    with asyncio.Runner(loop_factory=lambda: SimulationLoop(seed)) as runner:
        return runner.run(main)
