"""Waits for somebody outside with a limit that counts only their time, not ours."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from ai_whisperer.core.lateness import spared_seconds


class ConnectTimeoutError(TimeoutError):
    """The other side did not take part in time."""


class Patience:
    """`async with Patience(10):` raises `ConnectTimeoutError` when the block takes longer than so many seconds.

    When the event loop was held up, the time is extended by as much, so that what has come meanwhile can be seen.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._spared = 0
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._arm(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_over and self._task is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise ConnectTimeoutError from error

    def _arm(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._look, self._loop.time() + seconds)

    def _look(self, due: float) -> None:
        late = self._loop.time() - due
        left = spared_seconds(late_seconds=late, patience_seconds=self._seconds, times_spared=self._spared)
        if left:
            self._spared += 1
            self._arm(left)
            return
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
