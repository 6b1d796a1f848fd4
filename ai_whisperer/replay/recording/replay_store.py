"""The store of a replay: units are committed one by one, and what a process that dies had not committed is gone."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ai_whisperer.domain.note import Note
from ai_whisperer.store.base import FailureListener, Listener, Store, Unit


class ReplayStore:
    """A `Store` in front of another one. `told` hears of each commit before anybody else does.

    All that is not said here is done by the store behind it.
    """

    def __init__(self, store: Store, told: Callable[[Sequence[Note]], None]) -> None:
        self._store = store
        self._tell = told
        self._waiting: deque[tuple[Unit, asyncio.Future[None]]] = deque()
        self._is_busy = False
        self._flushing: list[asyncio.Future[None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def listen(self, session_id: str, on_committed: Listener, on_failure: FailureListener) -> None:
        def both(notes: Sequence[Note], sizes: Sequence[int]) -> None:
            on_committed(notes, sizes)
            self._tell(notes)

        self._store.listen(session_id, both, on_failure)

    def submit(self, unit: Unit) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((unit, future))
        self._go_on()
        return future

    def forget(self) -> None:
        """The process has died: what waits is not committed any more."""
        self._waiting.clear()
        self._tell_flushed()

    @property
    def is_flushed(self) -> bool:
        return not self._is_busy and not self._waiting

    async def flushed(self) -> None:
        if not self.is_flushed:
            await self.flushing()

    def flushing(self) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        if self.is_flushed:
            future.set_result(None)
        else:
            self._flushing.append(future)
        return future

    def _go_on(self) -> None:
        if self._is_busy or not self._waiting:
            self._tell_flushed()
            return
        self._is_busy = True
        unit, future = self._waiting.popleft()
        self._store.submit(unit).add_done_callback(lambda done: self._committed(done, future))

    def _committed(self, done: asyncio.Future[None], future: asyncio.Future[None]) -> None:
        self._is_busy = False
        if not future.done():
            error = done.exception()
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        self._go_on()

    def _tell_flushed(self) -> None:
        if self.is_flushed and self._flushing:
            flushing, self._flushing = self._flushing, []
            for future in flushing:
                if not future.done():
                    future.set_result(None)
