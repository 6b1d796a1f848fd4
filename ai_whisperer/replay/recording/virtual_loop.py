"""The event loop of a replay: on virtual time, and in one order. What is done for real takes real time."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ai_whisperer.testing.simulation import SimulationLoop

_T = TypeVar("_T")


class ReplayLoop(SimulationLoop):
    """Time moves only when nothing is ready to run. With a seed, what is ready runs in an order of the seed's choice."""

    def __init__(self, seed: int | None = None) -> None:
        self._shuffles = seed is not None
        self._settling: list[asyncio.Future[None]] = []
        self._calls_under_way = 0
        selector = _Selector()
        super().__init__(seed or 0, selector)
        selector.loop = self

    def settled(self) -> asyncio.Future[None]:
        """Is done when nothing is ready to run at this moment of virtual time."""
        waiter = self.create_future()
        self._settling.append(waiter)
        return waiter

    @contextmanager
    def for_real(self) -> Iterator[None]:
        """Within, something outside is waited for: time passes as it does there."""
        self._calls_under_way += 1
        try:
            yield
        finally:
            self._calls_under_way -= 1

    @property
    def has_calls_under_way(self) -> bool:
        return self._calls_under_way > 0

    def idle(self, timeout: float | None) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        if ready:
            if self._shuffles:
                super().idle(timeout)
            return
        if self._settling and (timeout is None or timeout > 0):
            settling, self._settling = self._settling, []
            for waiter in settling:
                if not waiter.done():
                    waiter.set_result(None)
            return
        super().idle(timeout)

    def let_pass(self, seconds: float) -> None:
        self._virtual_time += seconds


class _Selector(selectors.BaseSelector):
    """Waits for files only while something is done for real; else waiting is the passing of virtual time."""

    loop: ReplayLoop

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self.loop.has_calls_under_way:
            self.loop.idle(timeout)
            return []
        begun = time.monotonic()
        found = self._real.select(timeout)
        self.loop.let_pass(time.monotonic() - begun)
        return found


def run_virtually(main: Coroutine[Any, Any, _T], *, seed: int | None = None) -> _T:
    """Run a coroutine on a loop of its own. Not to be called within one: see `asyncio.to_thread`."""
    with asyncio.Runner(loop_factory=lambda: ReplayLoop(seed)) as runner:
        return runner.run(main)
