"""The event loop of a `Team`: virtual time on which threads are allowed, since it stands still while they run.

A plain function that is a tool runs in a thread, here as in a real process. Nothing else happens meanwhile, so the same
seed brings the same run, however slow the thread is.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

from ai_whisperer.errors import StateError
from ai_whisperer.simulation.loop import SimulationLoop, SimulationStalledError

LONGEST_THREAD_SECONDS = 60.0
"""So long, in real time, a thread may run; then whoever waits for it is told that it hangs."""


class TeamLoop(SimulationLoop):
    """A `SimulationLoop` that waits for threads. It has no sockets and no processes, and says so."""

    def __init__(self, seed: int) -> None:
        self._is_made = False
        self._asked: queue.SimpleQueue[asyncio.Handle] = queue.SimpleQueue()
        super().__init__(seed)
        self._is_made = True

    def stand_still_until(self, ended: asyncio.Future[Any]) -> None:
        """Return when it is done. What threads ask this loop for is done meanwhile, and nothing else is.

        Raises `SimulationStalledError` if that takes too long: a thread may wait for what only happens on this loop.
        """
        until = time.monotonic() + LONGEST_THREAD_SECONDS
        try:
            while not ended.done():
                self._asked.get(timeout=max(0.0, until - time.monotonic()))._run()  # noqa: SLF001 - as any loop does
        except queue.Empty:
            raise SimulationStalledError(
                f"A plain function still runs after {LONGEST_THREAD_SECONDS:g} real seconds, and virtual time stands "
                "still meanwhile. It must not wait for what others do: make it `async def`."
            ) from None

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """What threads ask for is done as soon as this loop stands still for one, else at its next look around."""
        if self._thread_id == threading.get_ident():  # type: ignore[attr-defined]
            return super().call_soon_threadsafe(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._asked.put(handle)
        return handle

    def idle(self, timeout: float | None) -> None:
        while not self._asked.empty():
            self._ready.append(self._asked.get())  # type: ignore[attr-defined]
        super().idle(timeout)

    def due_in(self) -> float | None:
        """In how many seconds something is due; None if nothing is left that could happen."""
        if self._ready or not self._asked.empty():  # type: ignore[attr-defined]
            return 0.0
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        due = min((timer.when() for timer in timers if not timer.cancelled()), default=None)
        return None if due is None else max(0.0, due - self.time())

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Whatever others would do in a thread of a pool is done here and now."""
        del executor
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever waits for it is told
            done.set_exception(error)
        return done

    def _add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        if self._is_made:
            raise StateError(
                "There are no network connections and no programs on virtual time. Give the team a tool that needs "
                "none; or let it be a plain `def`, which runs in a thread while virtual time stands still."
            )
        return super()._add_reader(fd, callback, *args)  # type: ignore[misc]

    def _add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:
        return self._add_reader(fd, callback, *args)
