"""Named locks for tasks, people and programs: leases with an end, given in the order in which they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from ai_whisperer.core import locking
from ai_whisperer.core.marks import named
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.locks import LeaseEnd, LeaseEnding, LockRecord
from ai_whisperer.domain.notifications.locks import LockAcquired, LockBroken, LockExpired, LockReleased, LockRenewed
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import ClosedError, LockHeldError, LockNotHeldError, WhispererError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.waiting.cycles import Cycles
from ai_whisperer.runtime.waiting.guards import Guards
from ai_whisperer.runtime.waiting.lock_book import LockBook
from ai_whisperer.runtime.waiting.lock_waits import ClientWait, wait_begun, wait_ended
from ai_whisperer.runtime.waiting.waits import Waits

Change = Callable[["Locks", Decision, str], LockRecord]
"""Changes a lock of that name and returns it as it was; raises, having changed nothing, if it cannot be."""


class Locks:
    """The locks of one session. A lock is held until it is released or broken, its lease is over or its task ends.

    A free lock has nobody who waits for it, and is forgotten. `token` rises each time any lock of the session changes
    hands, so that a write by a stale holder can be told from others; the last one is kept under an empty name.
    A lock that a person or program holds has no task; whoever knows the token can renew and release it.
    """

    def __init__(self, kernel: Kernel, waits: Waits, cycles: Cycles) -> None:
        self._kernel = kernel
        self._waits = waits
        self.book = LockBook(kernel, waits)
        self._cycles = cycles
        self._last_token = 0
        self.guards = Guards(kernel, self.book.check_held)
        waits.on_expiry(WaitKind.LOCK, self._give_up)

    def restore(self, locks: Iterable[LockRecord]) -> None:
        for lock in locks:
            self._last_token = max(self._last_token, lock.token)
            if lock.holder is not None:
                self.book.locks[lock.name] = lock
                if lock.task_id is not None:
                    self._waits.graph.holds(lock.task_id, lock.name)

    def resume(self) -> None:
        """Watch the leases again; those that are over end at once."""
        for lock in self.book.locks.values():
            self._arm(lock)

    def acquire(
        self,
        decision: Decision,
        task: TaskRecord,
        step: StepRecord,
        *,
        name: str,
        ttl_seconds: float,
        wait_seconds: float | None,
    ) -> LockRecord | WaitRecord:
        """Take the lock, or let the step wait for it. Raises, having changed nothing, if the wait would never end.

        A task that holds the lock already has its lease renewed.
        """
        locking.check_lock(name, ttl_seconds)
        deadline_at = self._waits.deadline(task, wait_seconds, now=decision.at)
        lock = self.book.locks.get(name)
        if lock is None:
            return self._give(decision, name, task.agent_id, ttl_seconds, task=task)
        if lock.task_id == task.id:
            return self._renew(decision, lock, ttl_seconds)
        self._cycles.check_lock(task, name)
        wait = WaitRecord(
            session_id=self._kernel.session_id,
            id=step.id,
            kind=WaitKind.LOCK,
            agent_id=task.agent_id,
            task_id=task.id,
            target=name,
            target_agent=lock.agent_id or "",
            arrival=self._kernel.next_arrival(),
            deadline_at=deadline_at,
            ttl_seconds=ttl_seconds,
            created_at=decision.at,
        )
        self._waits.begin(decision, wait)
        self._tell_waiting(decision, wait, lock)
        return wait

    def acquire_for(
        self, decision: Decision, holder: str, *, name: str, ttl_seconds: float, wait_seconds: float
    ) -> LockRecord | ClientWait:
        """Give the lock to a person or program, or let it wait; raises `LockHeldError` if it will not wait at all."""
        lock = self.book.locks.get(name)
        if lock is None:
            return self._give(decision, name, holder, ttl_seconds, task=None)
        if not wait_seconds:
            raise LockHeldError(f"Lock '{name}' is held by {lock.holder}. Wait for it, or try again later.")
        wait = ClientWait(
            self._kernel,
            name,
            waiter=holder,
            ttl_seconds=ttl_seconds,
            created_at=decision.at,
            deadline_at=decision.at + wait_seconds,
        )
        self.book.clients.add(wait)
        self._kernel.timers.at(wait.deadline_at, wait.key, partial(self._client_is_late, wait))
        self._tell_waiting(decision, wait, lock)
        return wait

    def renew(self, decision: Decision, lock: LockRecord, ttl_seconds: float) -> LockRecord:
        """Let the lease last for so long from now on."""
        locking.check_lock(lock.name, ttl_seconds)
        return self._renew(decision, lock, ttl_seconds)

    def release(self, decision: Decision, lock: LockRecord) -> None:
        """Give the lock to the first that waits, if any."""
        self._let_go(decision, lock)

    async def when_unused(self, name: str, change: Change, *, cause: str) -> LockRecord:
        """Decide a change of a lock at the moment at which no guarded block uses it; returns when it is durable.

        At that very moment, for the holder may begin the next block right after.
        """
        changed: asyncio.Future[tuple[LockRecord, asyncio.Future[None]]] = self._kernel.event_loop.create_future()

        def decide() -> None:
            if changed.done():
                return  # whoever wanted it has gone
            try:
                if not self._is_open:
                    raise ClosedError("The session was closed before the guarded block had ended. Nothing was changed.")
                decision = self._kernel.decide(cause)
                lock = change(self, decision, name)
            except WhispererError as error:
                changed.set_exception(error)
            else:
                changed.set_result((lock, decision.submit()))

        if not self.guards.when_done(name, decide):
            decide()
        lock, durable = await changed
        await asyncio.shield(durable)
        return lock

    def break_lock(self, decision: Decision, name: str, *, by: str, reason: str) -> LockRecord:
        """Take the lock from whoever holds it and give it to the first that waits; returns it as it was."""
        lock = self.book.locks.get(name)
        if lock is None:
            held = ", ".join(sorted(self.book.locks)) or "none"
            raise LockNotHeldError(f"Nobody holds lock '{name}', so there is nothing to break. Held locks: {held}.")
        self._free(decision, lock, LeaseEnding.BROKEN, by=by, reason=reason)
        return lock

    def release_all(self, decision: Decision, task: TaskRecord) -> None:
        """The task has ended, or will not go on for now: what it holds is free."""
        for name in self._waits.graph.held_by(task.id):
            self._let_go(decision, self.book.locks[name])

    def task_continued(self, decision: Decision, task: TaskRecord, following: TaskRecord) -> None:
        """What the task holds goes over to the one that goes on with it."""
        graph = self._waits.graph
        for name in graph.held_by(task.id):
            graph.frees(task.id, name)
            graph.holds(following.id, name)
            self._put(decision, replace(self.book.locks[name], task_id=following.id))

    def abandon(self, decision: Decision, wait: WaitRecord) -> None:
        """The task that waits has ended."""
        decision.tell(wait_ended(wait, "abandoned"))
        self._waits.forget(decision, wait)

    def client_gone(self, decision: Decision, wait: ClientWait) -> None:
        """Whoever waited does so no more. What it was given without having been told is free again."""
        if self.book.clients.remove(wait):
            decision.tell(wait_ended(wait, "abandoned"))
        elif wait.lock is not None:
            self.forsake(decision, wait.lock)

    def forsake(self, decision: Decision, lock: LockRecord) -> None:
        """Whoever was given the lock went away before it was told: it is free again, unless it is by now."""
        known = self.book.locks.get(lock.name)
        if known is not None and known.token == lock.token:
            self._let_go(decision, known)

    def close(self, failure: BaseException) -> None:
        """Nothing more will be given here: tell the people and programs that wait."""
        waits = self.book.clients.all()
        if waits and self._kernel.log.failure is None:
            decision = self._kernel.decide("shutdown")
            for wait in waits:
                decision.tell(wait_ended(wait, "abandoned"))
            decision.submit()
        for wait in waits:
            self.book.clients.fail(wait, failure)

    def _tell_waiting(self, decision: Decision, wait: WaitRecord | ClientWait, lock: LockRecord) -> None:
        deadline_at = self._kernel.clock.shown(wait.deadline_at)
        decision.tell(wait_begun(wait, holder=lock.holder or "", deadline_at=deadline_at))

    def _give(
        self, decision: Decision, name: str, holder: str, ttl_seconds: float, *, task: TaskRecord | WaitRecord | None
    ) -> LockRecord:
        self._last_token += 1
        agent_id, task_id = (None, None) if task is None else (task.agent_id, _task_id(task))
        given = LockRecord(
            session_id=self._kernel.session_id,
            name=name,
            token=self._last_token,
            agent_id=agent_id,
            task_id=task_id,
            acquired_at=decision.at,
            expires_at=decision.at + ttl_seconds,
            holder=holder,
        )
        if task_id is not None:
            self._waits.graph.holds(task_id, name)
        self._put(decision, given)
        decision.tell(LockAcquired.of(self.book.shown(given)))
        return given

    def _renew(self, decision: Decision, lock: LockRecord, ttl_seconds: float) -> LockRecord:
        renewed = replace(lock, expires_at=decision.at + ttl_seconds)
        self._put(decision, renewed)
        decision.tell(LockRenewed.of(self.book.shown(renewed)))
        return renewed

    def _let_go(self, decision: Decision, lock: LockRecord) -> None:
        """Release the lock, once no guarded block uses it."""
        if not self.guards.when_done(lock.name, partial(self._let_go_later, lock, decision.cause)):
            self._free(decision, lock, LeaseEnding.RELEASED)

    def _let_go_later(self, lock: LockRecord, cause: str) -> None:
        if self._is_open:
            decision = self._kernel.decide(cause)
            self.forsake(decision, lock)
            if decision.unit:
                decision.submit()

    @property
    def _is_open(self) -> bool:
        """Whether something can still be decided; a guarded block may end when that is over."""
        return self._kernel.log.failure is None and not self._kernel.log.closed

    def _free(
        self, decision: Decision, lock: LockRecord, ending: LeaseEnding, *, by: str = "", reason: str = ""
    ) -> None:
        """Take the lock from its holder and give it to the first that waits."""
        if lock.task_id is not None:
            self._waits.graph.frees(lock.task_id, lock.name)
        end = LeaseEnd(
            name=lock.name,
            token=lock.token,
            holder=lock.holder or "",
            task_id=lock.task_id,
            ending=ending,
            at=decision.at,
            by=by,
            reason=reason,
        )
        self.book.ended.add(end)
        match ending:
            case LeaseEnding.RELEASED:
                decision.tell(LockReleased.of(lock))
            case LeaseEnding.EXPIRED:
                decision.tell(LockExpired.of(lock))
            case LeaseEnding.BROKEN:
                decision.tell(LockBroken.of(lock, by=by, reason=reason))
        queue = self.book.queue(lock.name)
        if not queue:
            self._forget(decision, lock)
        elif isinstance(queue[0], ClientWait):
            self._give_to_client(decision, queue[0])
        else:
            self._give_to_task(decision, [wait for wait in queue if isinstance(wait, WaitRecord)])

    def _give_to_client(self, decision: Decision, wait: ClientWait) -> None:
        given = self._give(decision, wait.name, wait.waiter, wait.ttl_seconds, task=None)
        decision.tell(wait_ended(wait, "acquired"))
        self.book.clients.give(decision, wait, given)

    def _give_to_task(self, decision: Decision, waiting: list[WaitRecord]) -> None:
        first = waiting[0]
        given: LockRecord | None = None
        for wait in waiting:
            if wait.task_id == first.task_id:  # it may have asked more than once: then the last renews the first
                ttl_seconds = wait.ttl_seconds or 1.0
                if given is None:
                    given = self._give(decision, wait.target, wait.agent_id, ttl_seconds, task=wait)
                else:
                    given = self._renew(decision, given, ttl_seconds)
                self._end(decision, wait, "acquired", ToolResult(content=locking.in_words(given, ttl_seconds)))

    def _forget(self, decision: Decision, lock: LockRecord) -> None:
        del self.book.locks[lock.name]
        self._kernel.timers.cancel(f"lock:{lock.name}")
        decision.unit.delete_lock(lock)
        decision.unit.put_lock(LockRecord(session_id=lock.session_id, name="", token=self._last_token))

    def _put(self, decision: Decision, lock: LockRecord) -> None:
        decision.unit.put_lock(lock)
        self.book.locks[lock.name] = lock
        self._arm(lock)

    def _arm(self, lock: LockRecord) -> None:
        if lock.expires_at is not None:
            self._kernel.timers.at(lock.expires_at, f"lock:{lock.name}", partial(self._lease_is_over, lock.name))

    def _lease_is_over(self, name: str) -> None:
        """Free the lock, once no guarded block uses it, unless it was renewed or has gone meanwhile."""
        lock = self.book.locks.get(name)
        if lock is None or not self._is_open:
            return
        if not locking.is_over(lock, now=self._kernel.clock.now()):
            self._arm(lock)
        elif not self.guards.when_done(name, partial(self._lease_is_over, name)):
            decision = self._kernel.decide(f"timer:lock:{name}")
            self._free(decision, lock, LeaseEnding.EXPIRED)
            decision.submit()

    def _client_is_late(self, wait: ClientWait) -> None:
        decision = self._kernel.decide(f"timer:{wait.key}")
        decision.tell(wait_ended(wait, "timed_out"))
        decision.submit()
        self.book.clients.fail(wait, LockHeldError(self._still_held(wait.name, decision.at - wait.created_at)))

    def _give_up(self, decision: Decision, wait: WaitRecord) -> None:
        told = f"Timeout: {self._still_held(wait.target, decision.at - wait.created_at)}"
        self._end(decision, wait, "timed_out", ToolResult(content=told, is_error=True))

    def _still_held(self, name: str, seconds: float) -> str:
        holder = named(self.book.locks[name].holder or "")
        return f"after {round(seconds)} seconds lock '{name}' is still held by {holder}. You no longer wait."

    def _end(self, decision: Decision, wait: WaitRecord, outcome: str, result: ToolResult) -> None:
        decision.tell(wait_ended(wait, outcome))
        self._waits.end(decision, wait, result)


def _task_id(task: TaskRecord | WaitRecord) -> str:
    return task.id if isinstance(task, TaskRecord) else task.task_id
