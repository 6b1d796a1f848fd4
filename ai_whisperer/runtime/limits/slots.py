"""The places of loops at work: a session has so many, and work for which there is none waits in a line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.session.kernel import Kernel


class Again:
    """A task that goes on in the middle of a step and waits for a place."""

    __slots__ = ("task_id",)

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id


class LoopSlots:
    """Whoever came first gets the next place; an agent that has more work goes to the end of the line for it.

    `used` is how many loops have a place now.
    """

    def __init__(self, kernel: Kernel, stated: StatedLimits, reached: ReachedLimits) -> None:
        self._kernel = kernel
        self._stated = stated
        self._reached = reached
        self._line: dict[object, Callable[[], None]] = {}
        self._turn_of: object = None
        self._called = False
        self.used = 0

    @property
    def has_room(self) -> bool:
        """Whether there is a place that nobody waits for."""
        return self.used < self._stated.whole.max_concurrent_loops and not self._line

    def line_up(self, place: Callable[[object], int]) -> object:
        """Put those who wait in the order of these numbers; who is the first then, None if nobody waits."""
        if len(self._line) > 1:
            self._line = {who: self._line[who] for who in sorted(self._line, key=place)}
        return next(iter(self._line), None)

    def may_begin(self, who: object, agent_id: str, go_on: Callable[[], None]) -> bool:
        """Whether there is a place for one more loop. If not, `go_on` is called when it is the turn of `who`."""
        if self._turn_of is who:
            self._turn_of = None
            return True
        most = self._stated.whole.max_concurrent_loops
        if self.used < most and not self._line:
            return True
        if who not in self._line:
            self._line[who] = go_on
            waiting = LimitReached(
                scope=LimitScope.SESSION,
                limit="max_concurrent_loops",
                action=LimitAction.WAITING,
                used=self.used,
                most=most,
                agent_id=agent_id,
                task_id=None,
            )
            self._reached.tell_alone(waiting)
            self.look_again()  # there may be a place that those before have not taken yet
        return False

    async def take_again(self, agent_id: str, task_id: str, take: Callable[[], None]) -> None:
        """Wait for a place for a loop that goes on in the middle of a step, before all that begin; then call `take`."""
        taken: asyncio.Future[None] = self._kernel.event_loop.create_future()
        again = Again(task_id)

        def go_on() -> None:
            if not taken.done():  # else whoever waited has gone
                take()
                taken.set_result(None)

        if self._kernel.closing or self.may_begin(again, agent_id, go_on):
            go_on()
        else:
            del self._line[again]
            before: dict[object, Callable[[], None]]
            before = {who: each for who, each in self._line.items() if isinstance(who, Again)}
            self._line = {**before, again: go_on, **self._line}
        await taken

    def take(self) -> None:
        """A loop begins to work."""
        self.used += 1

    def give_back(self) -> None:
        """A loop has ended, or rests."""
        self.used -= 1
        if self._line:
            self.look_again()

    def look_again(self) -> None:
        """Let those go on for whom there is a place now, soon: whoever calls this is still about to do something."""
        if self._line and not self._called:
            self._called = True
            self._kernel.event_loop.call_soon(self._serve)

    def _serve(self) -> None:
        self._called = False
        while self._line and self.used < self._stated.whole.max_concurrent_loops:
            if self._kernel.closing:
                return
            self._turn_of = next(iter(self._line))
            go_on = self._line.pop(self._turn_of)
            try:
                go_on()
            except BaseException:
                self.look_again()  # whatever became of this one, the others have their turn
                raise
            finally:
                self._turn_of = None
