"""What all of one session is built on: its store, its log, its time, and the decisions that bring these together."""

from __future__ import annotations

import asyncio
import random
from contextvars import copy_context
from threading import get_ident

from ai_whisperer.domain.clock import IdSource
from ai_whisperer.domain.notifications.sessions import ClockChanged
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import ClosedError
from ai_whisperer.runtime.session.background import Background
from ai_whisperer.runtime.session.cause import forget_caller
from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.clock_watch import ClockWatch
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.erasing import Erasing
from ai_whisperer.runtime.session.log import NotificationBus
from ai_whisperer.runtime.session.reads import Overlay, Reads
from ai_whisperer.runtime.session.roles import Roster
from ai_whisperer.runtime.session.timers import Timers
from ai_whisperer.store.base import FailureListener, Store, Unit


class Kernel:
    """The inside of one session, without anything that is done in it.

    `closing` is set when nothing new may begin. `on_refused` is told if the store refuses what was decided. What is
    in `ended_lately` has ended durably, but a read that is under way may miss it.
    """

    def __init__(
        self,
        session_id: str,
        *,
        store: Store,
        reads: Reads,
        log: NotificationBus,
        clock: SessionClock,
        random: random.Random,
        ids: IdSource,
        last_arrival: int,
        roster: Roster,
    ) -> None:
        self.session_id = session_id
        self.store = store
        self.reads = reads
        self.ended_lately: Overlay[str, TaskRecord] = Overlay()
        self.log = log
        self.erasing = Erasing(session_id, store, reads, log)
        self.clock = clock
        self.random = random
        self.ids = ids
        self.event_loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self.context = copy_context()
        self.context.run(forget_caller)
        self.background = Background(self.event_loop)
        self.closing = False
        self.on_refused: FailureListener | None = None
        self._running = roster.running
        self._arrival = last_arrival
        self._waiters: dict[str, set[asyncio.Future[TaskRecord]]] = {}
        self._watch = ClockWatch(clock, roster, tell=self._tell_clock)
        self.timers = Timers(clock, on_look=self._look_at_clock, context=self.context.copy())

    def decide(self, cause: str) -> Decision:
        """Begin a decision; raises what the store failed with, if it did."""
        if self.log.failure is not None:
            raise self.log.failure
        clock = self.clock
        at = clock.now()
        if not self._running and (clock.offset or clock.is_off(at)):
            self._look_at_clock()
            at = clock.now()
        self._watch.decided_at = at
        return Decision(self, cause, at, Unit(self.on_refused))

    async def flushed(self) -> None:
        """Wait until all that was decided so far is on disk; raises what the store failed with if it never will be."""
        await self.store.flushed()
        if self.log.failure is not None:
            raise self.log.failure

    def next_arrival(self) -> int:
        self._arrival += 1
        return self._arrival

    @property
    def last_arrival(self) -> int:
        """The place in the order of arrivals of what came last."""
        return self._arrival

    def check_event_loop(self) -> None:
        """Raise `ClosedError` if the caller runs in another event loop than the session; one in none may read.

        To ask for the running loop costs a system call, so that is done only if this is not the session's thread.
        """
        if get_ident() == self._thread and self.event_loop.is_running():
            return
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if running is not self.event_loop:
            raise ClosedError(
                "The session was opened in another event loop. Open, use and close it within one asyncio.run(); from "
                "another thread, hand calls over with asyncio.run_coroutine_threadsafe. Nothing was changed."
            )

    async def end_of_task(self, task_id: str) -> TaskRecord:
        """Wait for the end of the task and return it as it ended."""
        waiter: asyncio.Future[TaskRecord] = self.event_loop.create_future()
        self._waiters.setdefault(task_id, set()).add(waiter)
        try:
            return await waiter
        finally:
            self._forget_waiter(task_id, waiter)

    def tell_waiters(self, task: TaskRecord, durable: asyncio.Future[None]) -> None:
        """Tell those who wait for the task, once its end is durable."""

        def tell(future: asyncio.Future[None]) -> None:
            failure = None if future.cancelled() else future.exception()
            if failure is None and (self.reads.under_way or task.id in self.ended_lately):
                self.ended_lately.keep(task.id, task, until=self.reads.under_way.when_seen)
            for waiter in self._waiters.pop(task.id, ()):
                if waiter.done():
                    continue
                if failure is not None:
                    waiter.set_exception(failure)
                else:
                    waiter.set_result(task)

        durable.add_done_callback(tell)

    def release_waiters(self, failure: BaseException) -> None:
        """Nothing more will end here: tell those who still wait."""
        for waiters in list(self._waiters.values()):
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(failure)
        self._waiters.clear()

    def _look_at_clock(self) -> None:
        if not self.closing and self.log.failure is None:
            self._watch.look(counts=self.timers.counts or self.background.is_busy)

    def _tell_clock(self, cause: str, offset: int) -> None:
        self._watch.decided_at = at = self.clock.now()
        decision = Decision(self, cause, at, Unit(self.on_refused))
        decision.tell(ClockChanged(clock_offset_seconds=offset))
        decision.submit()

    def _forget_waiter(self, task_id: str, waiter: asyncio.Future[TaskRecord]) -> None:
        waiters = self._waiters.get(task_id)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiters[task_id]
