"""Notices when nothing has come for a while, or too much for too long: one timer for all requests in flight."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ai_whisperer.errors import AnswerTimeError, ModelTimeoutError
from ai_whisperer.models.base import StreamEvent

PassOn = Callable[[StreamEvent], None]


class StallWatch:
    """Watches over the guards that are in use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lanes: dict[tuple[float, float], _Lane] = {}

    def guard(self, seconds: float, pass_on: PassOn | None = None, *, max_seconds: float = math.inf) -> StallGuard:
        """`with watch.guard(120) as guard:` raises `ModelTimeoutError` when `take` is not called for so long.

        Raises `AnswerTimeError` when the block takes longer than `max_seconds`. What the guard takes it passes on.
        """
        lane = self._lanes.get((seconds, max_seconds))
        if lane is None:
            lane = self._lanes[seconds, max_seconds] = _Lane(seconds, max_seconds, self._loop)
        return StallGuard(lane, pass_on)


class StallGuard:
    __slots__ = ("_lane", "_now", "_pass_on", "_stalled", "_task", "ends", "last")

    def __init__(self, lane: _Lane, pass_on: PassOn | None) -> None:
        self._lane = lane
        self._pass_on = pass_on
        self._stalled = False
        self._task = asyncio.current_task(lane.loop)
        self._now = lane.loop.time
        self.last = self._now()
        self.ends = self.last + lane.max_seconds

    def __enter__(self) -> Self:
        self._lane.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lane.leave(self)
        if self._stalled and self._task is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            if self._lane.loop.time() >= self.ends:
                raise AnswerTimeError(
                    f"The answer of the model took longer than {self._lane.max_seconds:,g} seconds "
                    "(max_answer_seconds), so it was cut off. Ask for less at a time, or raise the limit."
                ) from error
            raise ModelTimeoutError(f"The model sent nothing for {self._lane.seconds:g} seconds.") from error

    def take(self, event: StreamEvent) -> None:
        """Something has come."""
        self.last = self._now()
        if self._pass_on is not None:
            self._pass_on(event)

    def stall(self) -> None:
        if self._task is not None and not self._stalled:
            self._stalled = True
            self._task.cancel()


class _Lane:
    """The guards with the same patience. While there are any, one timer is set for the first that could stall."""

    def __init__(self, seconds: float, max_seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        self.seconds = seconds
        self.max_seconds = max_seconds
        self.loop = loop
        self._guards: dict[StallGuard, None] = {}
        self._is_armed = False

    def enter(self, guard: StallGuard) -> None:
        self._guards[guard] = None
        if not self._is_armed:
            self._arm(min(self.seconds, self.max_seconds))

    def leave(self, guard: StallGuard) -> None:
        del self._guards[guard]

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._is_armed = False
        now = self.loop.time()
        patience = min(self.seconds, self.max_seconds)
        for guard in list(self._guards):
            left = min(guard.last + self.seconds, guard.ends) - now
            if left <= 0:
                guard.stall()
            else:
                patience = min(patience, left)
        if self._guards:
            self._arm(patience)
