"""Notices when nothing has come for a while, or too much for too long: one timer for all requests in flight."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from types import TracebackType
from typing import NamedTuple, Self

from ai_whisperer.core.lateness import spared_seconds
from ai_whisperer.errors import AnswerTimeError, ModelTimeoutError
from ai_whisperer.models.base import Alive, StreamEvent

PassOn = Callable[[StreamEvent], None]


class StallWatch:
    """Watches over the guards that are in use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lanes: dict[tuple[float, float, float], _Lane] = {}

    def guard(
        self,
        seconds: float,
        pass_on: PassOn | None = None,
        *,
        first_seconds: float | None = None,
        max_seconds: float = math.inf,
        on_taken: Callable[[], None] | None = None,
    ) -> StallGuard:
        """`with watch.guard(120) as guard:` raises `ModelTimeoutError` when `take` is not called for so long.

        Until something of the answer has come it is `first_seconds`. When the event loop was held up, what has come
        meanwhile is taken before anybody is blamed. Raises `AnswerTimeError` when the block takes longer than
        `max_seconds`. What the guard takes it passes on, but for mere signs of life. `on_taken` is called when the
        provider has taken the request, perhaps twice.
        """
        patience = (seconds if first_seconds is None else first_seconds, seconds, max_seconds)
        lane = self._lanes.get(patience)
        if lane is None:
            lane = self._lanes[patience] = _Lane(_Patience(*patience), self._loop)
        return StallGuard(lane, pass_on, on_taken)


class _Patience(NamedTuple):
    first_seconds: float
    seconds: float
    max_seconds: float


class StallGuard:
    __slots__ = (
        "_lane",
        "_now",
        "_on_taken",
        "_pass_on",
        "_stalled",
        "_task",
        "_then",
        "ends",
        "last",
        "seconds",
        "spared",
    )

    def __init__(self, lane: _Lane, pass_on: PassOn | None, on_taken: Callable[[], None] | None) -> None:
        self._lane = lane
        self._on_taken = on_taken
        self._then = pass_on
        self._pass_on = pass_on if on_taken is None else self._first
        self._stalled = False
        self._task = asyncio.current_task(lane.loop)
        self._now = lane.loop.time
        self.last = self._now()
        self.ends = self.last + lane.patience.max_seconds
        self.seconds = lane.patience.first_seconds
        self.spared = 0

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
                    f"The answer of the model took longer than {self._lane.patience.max_seconds:,g} seconds "
                    "(max_answer_seconds), so it was cut off. Ask for less at a time, or raise the limit."
                ) from error
            limit = "stall_seconds" if self.seconds == self._lane.patience.seconds else "first_token_seconds"
            raise ModelTimeoutError(f"The model sent nothing for {self.seconds:g} seconds ({limit}).") from error

    def take(self, event: StreamEvent) -> None:
        """Something has come."""
        self.last = self._now()
        self.spared = 0
        if type(event) is Alive:
            if event.is_taken and self._on_taken is not None:
                self._on_taken()
            return
        self.seconds = self._lane.patience.seconds
        if self._pass_on is not None:
            self._pass_on(event)

    def _first(self, event: StreamEvent) -> None:
        """Something of the answer has come: whoever answers has taken the request."""
        self._pass_on = self._then
        if self._on_taken is not None:
            self._on_taken()
        if self._then is not None:
            self._then(event)

    def stall(self) -> None:
        if self._task is not None and not self._stalled:
            self._stalled = True
            self._task.cancel()


class _Lane:
    """The guards with the same patience. While there are any, one timer is set for the first that could stall."""

    def __init__(self, patience: _Patience, loop: asyncio.AbstractEventLoop) -> None:
        self.patience = patience
        self.loop = loop
        self._guards: dict[StallGuard, None] = {}
        self._context = Context()  # not that of who comes first: the timer may be there when its session is closed
        self._is_armed = False

    def enter(self, guard: StallGuard) -> None:
        self._guards[guard] = None
        if not self._is_armed:
            self._arm(min(self.patience))

    def leave(self, guard: StallGuard) -> None:
        del self._guards[guard]

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        self.loop.call_later(seconds, self._look, self.loop.time() + seconds, context=self._context)

    def _look(self, due: float) -> None:
        self._is_armed = False
        now = self.loop.time()
        patience = min(self.patience)
        for guard in list(self._guards):
            left = min(guard.last + guard.seconds, guard.ends) - now
            if left <= 0 and now < guard.ends:
                left = spared_seconds(late_seconds=now - due, patience_seconds=guard.seconds, times_spared=guard.spared)
                guard.spared += 1
            if left <= 0:
                guard.stall()
            else:
                patience = min(patience, left)
        if self._guards:
            self._arm(patience)
