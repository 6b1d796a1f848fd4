"""Which locks are held, by whom and with which token; who waits; and what became of tokens of the past."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from ai_whisperer.core import locking
from ai_whisperer.domain.locks import LockCheck, LockRecord, LockSummary
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import LockNotHeldError
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.waiting.lock_waits import ClientWait, ClientWaits, waiter_of
from ai_whisperer.runtime.waiting.waits import Waits


class LockBook:
    """What can be read of the locks of one session."""

    def __init__(self, kernel: Kernel, waits: Waits) -> None:
        self._kernel = kernel
        self._waits = waits
        self.locks: dict[str, LockRecord] = {}
        self.ended = locking.EndedLeases()
        self.clients = ClientWaits(kernel)

    def listed(self) -> list[LockSummary]:
        """The locks that somebody holds, by name, and who waits for them."""
        locks = sorted(self.locks.values(), key=lambda lock: lock.name)
        offset = self._kernel.clock.offset
        return [
            LockSummary(
                **asdict(self.shown(lock)),
                waiting=tuple(waiter_of(wait, offset=offset) for wait in self.queue(lock.name)),
            )
            for lock in locks
        ]

    def shown(self, lock: LockRecord) -> LockRecord:
        """The lock as people and programs see it: its lease ends when the wall clock shows `expires_at`."""
        clock = self._kernel.clock
        if lock.expires_at is None or not clock.offset:
            return lock
        return replace(lock, expires_at=clock.shown(lock.expires_at))

    def held(self) -> list[LockRecord]:
        return list(self.locks.values())

    def holder_of(self, name: str) -> str | None:
        lock = self.locks.get(name)
        return None if lock is None else lock.holder

    def people_waiting(self) -> list[ClientWait]:
        """The people and programs that wait for any lock."""
        return self.clients.all()

    def queue(self, name: str) -> list[WaitRecord | ClientWait]:
        """Those who wait for the lock, in the order in which they came."""
        tasks = self._waits.graph.waits_for(WaitKind.LOCK, name)
        return sorted((*tasks, *self.clients.of_lock(name)), key=lambda wait: wait.arrival)

    def of_task(self, task_id: str, name: str) -> LockRecord:
        """The lock that the task holds; raises `LockNotHeldError` that says what became of it."""
        lock = self.locks.get(name)
        if lock is None or lock.task_id != task_id:
            raise self._not_held(task_id, name, lock)
        if locking.is_over(lock, now=self._kernel.clock.now()):
            raise self._not_held(task_id, name, None, over=lock)
        return lock

    def check_held(self, task_id: str, name: str, token: int) -> None:
        """Raise `LockNotHeldError` unless the task holds the lock with exactly this token now."""
        locking.check_lock_name(name)
        locking.check_token(token)
        lock = self.of_task(task_id, name)
        if lock.token != token:
            raise LockNotHeldError(locking.other_token(name, token, lock, self.ended.of_token(name, token)))

    def of_token(self, name: str, token: int) -> LockRecord:
        """The lock that is held with this token; raises `LockNotHeldError` that says what became of it."""
        check = self.check(name, token)
        if check.lock is None or not check.is_current:
            raise LockNotHeldError(check.told)
        return check.lock

    def check(self, name: str, token: int) -> LockCheck:
        """Whether this is the current token of the lock, and what became of it if not."""
        lock, ended = self.locks.get(name), self.ended.of_token(name, token)
        if lock is not None and locking.is_over(lock, now=self._kernel.clock.now()):
            ended = locking.ran_out(lock) if lock.token == token else ended
            lock = None
        is_current = lock is not None and lock.token == token
        if is_current and lock is not None:
            told = f"{lock.holder} holds lock '{name}' with token {token}."
        else:
            told = locking.not_current(name, token, lock=lock, ended=ended)
        return LockCheck(name=name, token=token, is_current=is_current, lock=lock, ended=ended, told=told)

    def _not_held(
        self, task_id: str, name: str, lock: LockRecord | None, *, over: LockRecord | None = None
    ) -> LockNotHeldError:
        """`lock` is who has it now, `over` the task's own lease if its time has passed."""
        held = [each for each in self._waits.graph.held_by(task_id) if each != name]
        ended = self.ended.of_task(name, task_id) if over is None else locking.ran_out(over)
        return LockNotHeldError(locking.not_held_by_task(name, held=held, ended=ended, lock=lock))
