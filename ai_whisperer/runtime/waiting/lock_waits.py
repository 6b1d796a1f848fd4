"""Those who wait for a lock: tasks have a row, people and programs wait only as long as they are there."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.locks import LockRecord, LockWaiter
from ai_whisperer.domain.notifications.locks import LockWaitEnded, LockWaiting
from ai_whisperer.domain.waits import WaitRecord
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel


class ClientWait:
    """A person or program that waits. `lock` is what it was given; `given` is done when it can be told."""

    __slots__ = ("arrival", "created_at", "deadline_at", "given", "id", "lock", "name", "ttl_seconds", "waiter")

    def __init__(
        self,
        kernel: Kernel,
        name: str,
        *,
        waiter: str,
        ttl_seconds: float,
        created_at: float,
        deadline_at: float,
    ) -> None:
        self.id = kernel.ids.new()
        self.name = name
        self.waiter = waiter
        self.ttl_seconds = ttl_seconds
        self.arrival = kernel.next_arrival()
        self.created_at = created_at
        self.deadline_at = deadline_at
        self.lock: LockRecord | None = None
        self.given: asyncio.Future[LockRecord] = kernel.event_loop.create_future()

    @property
    def key(self) -> str:
        return f"lock-wait:{self.id}"


class ClientWaits:
    """The people and programs of one session that wait, by lock, in the order in which they came."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._waits: dict[str, dict[str, ClientWait]] = {}

    def of_lock(self, name: str) -> list[ClientWait]:
        return list(self._waits.get(name, {}).values())

    def all(self) -> list[ClientWait]:
        return [wait for waits in self._waits.values() for wait in waits.values()]

    def add(self, wait: ClientWait) -> None:
        self._waits.setdefault(wait.name, {})[wait.id] = wait

    def remove(self, wait: ClientWait) -> bool:
        """Take it out of the queue; False if it was not in it any more."""
        waits = self._waits.get(wait.name, {})
        known = waits.pop(wait.id, None) is not None
        if known and not waits:
            del self._waits[wait.name]
        self._kernel.timers.cancel(wait.key)
        return known

    def give(self, decision: Decision, wait: ClientWait, lock: LockRecord) -> None:
        """Tell it that the lock is its own, once that is durable."""
        self.remove(wait)
        wait.lock = lock
        decision.when_durable(lambda: self._tell(wait, lock))

    def fail(self, wait: ClientWait, error: BaseException) -> None:
        """It waits no more, and is told why."""
        self.remove(wait)
        if not wait.given.done():
            wait.given.set_exception(error)
            wait.given.exception()  # whoever waited may be gone by now

    def _tell(self, wait: ClientWait, lock: LockRecord) -> None:
        failure = self._kernel.log.failure
        if failure is not None:
            self.fail(wait, failure)
        elif not wait.given.done():
            wait.given.set_result(lock)


class _WhoWaits(TypedDict):
    """Who waits for which lock, as it is announced."""

    name: str
    waiter: str
    agent_id: str | None
    task_id: str | None
    step_id: str | None
    wait_id: str | UnsetType


def wait_begun(wait: WaitRecord | ClientWait, *, holder: str, deadline_at: float) -> LockWaiting:
    """That it waits, for a lock which the holder has; `deadline_at` is what the wall clock shows then."""
    return LockWaiting(**_who_waits(wait), holder=holder, deadline_at=deadline_at)


def wait_ended(wait: WaitRecord | ClientWait, outcome: str) -> LockWaitEnded:
    """That it waits no more."""
    return LockWaitEnded(**_who_waits(wait), outcome=outcome)


def _who_waits(wait: WaitRecord | ClientWait) -> _WhoWaits:
    if isinstance(wait, ClientWait):
        return _WhoWaits(name=wait.name, waiter=wait.waiter, agent_id=None, task_id=None, step_id=None, wait_id=wait.id)
    return _WhoWaits(
        name=wait.target,
        waiter=wait.agent_id,
        agent_id=wait.agent_id,
        task_id=wait.task_id,
        step_id=wait.id,
        wait_id=UNSET,
    )


def waiter_of(wait: WaitRecord | ClientWait, *, offset: float) -> LockWaiter:
    """Who waits, as it is listed: the wall clock is so many seconds ahead of the session's."""
    if isinstance(wait, ClientWait):
        waiter, agent_id, task_id = wait.waiter, None, None
    else:
        waiter, agent_id, task_id = wait.agent_id, wait.agent_id, wait.task_id
    return LockWaiter(
        waiter=waiter,
        agent_id=agent_id,
        task_id=task_id,
        ttl_seconds=wait.ttl_seconds or 1.0,
        deadline_at=wait.deadline_at + offset,
        created_at=wait.created_at,
    )
