"""Notices when nothing has come for a while, at the price of one timer however much comes."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from ai_whisperer.errors import ModelTimeoutError


class StallGuard:
    """`with StallGuard(120) as guard:` raises `ModelTimeoutError` when `guard.touch()` is not called for so long."""

    __slots__ = ("_handle", "_last", "_loop", "_seconds", "_stalled", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stalled = False

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._last = self._loop.time()
        self._handle = self._loop.call_later(self._seconds, self._check)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._stalled and self._task is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise ModelTimeoutError(f"The model sent nothing for {self._seconds:g} seconds.") from error

    def touch(self) -> None:
        self._last = self._loop.time()

    def _check(self) -> None:
        quiet = self._loop.time() - self._last
        if quiet < self._seconds:
            self._handle = self._loop.call_later(self._seconds - quiet, self._check)
        elif self._task is not None:
            self._stalled = True
            self._task.cancel()
