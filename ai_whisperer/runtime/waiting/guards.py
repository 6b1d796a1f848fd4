"""Guarded blocks: what is done inside is done by whoever holds the lock, for the lease does not end meanwhile.

All guarded blocks of a session run in one process, and begin and end on its event loop. So whether the lock is held is
decided at one moment, and from that moment to the end of the block no other can get it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import count
from types import TracebackType
from typing import TypeVar

from ai_whisperer.core.locking import LONGEST_GUARD_SECONDS
from ai_whisperer.errors import ClosedError, LockNotHeldError
from ai_whisperer.runtime.session.kernel import Kernel

R = TypeVar("R")

HeldBy = Callable[[str, str, int], None]
"""Raises `LockNotHeldError` unless the task holds the lock with exactly that token."""


class Guards:
    """The guarded blocks of one session that are under way."""

    def __init__(self, kernel: Kernel, check: HeldBy) -> None:
        self._kernel = kernel
        self._check = check
        self._numbers = count(1)
        self._under_way: dict[str, set[int]] = {}
        self._afterwards: dict[str, list[Callable[[], object]]] = {}

    def guard(self, task_id: str, lock: str, token: int) -> Guard:
        """A block in which the task holds the lock with that token; see `ToolContext.guard`."""
        return Guard(self, task_id, lock, token)

    def when_done(self, lock: str, callback: Callable[[], object]) -> bool:
        """Call back when no guarded block uses the lock any more; False, and no call, if none does now."""
        if lock not in self._under_way:
            return False
        self._afterwards.setdefault(lock, []).append(callback)
        return True

    def begin(self, task_id: str, lock: str, token: int) -> int:
        self._check(task_id, lock, token)
        number = next(self._numbers)
        self._under_way.setdefault(lock, set()).add(number)
        until = self._kernel.clock.now() + LONGEST_GUARD_SECONDS
        self._kernel.timers.at(until, _key(number), partial(self._end, lock, number))
        return number

    def end(self, task_id: str, lock: str, token: int, *, number: int) -> None:
        """Raises `LockNotHeldError` if the block took so long that the lease has ended before it."""
        in_time = number in self._under_way.get(lock, ())
        self._end(lock, number)
        if not in_time:
            try:
                self._check(task_id, lock, token)
            except LockNotHeldError as error:
                raise LockNotHeldError(
                    f"The guarded block took more than {LONGEST_GUARD_SECONDS:g} seconds and lost the lock meanwhile, "
                    f"so that others may have written at the same time. {error.message} Look at what is there now."
                ) from error

    def run(self, call: Callable[[], R]) -> R:
        """Call it on the event loop of the session, from whichever thread this is."""
        loop = self._kernel.event_loop
        if _running_loop() is loop:
            return call()
        outcome: Future[R] = Future()

        def settle() -> None:
            try:
                outcome.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits for it
                outcome.set_exception(error)

        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError as error:
            raise ClosedError("The session has ended, and with it the guarded block.") from error
        return outcome.result()

    def _end(self, lock: str, number: int) -> None:
        blocks = self._under_way.get(lock, set())
        blocks.discard(number)
        self._kernel.timers.cancel(_key(number))
        if not blocks and self._under_way.pop(lock, None) is not None:
            for callback in self._afterwards.pop(lock, ()):
                callback()


class Guard:
    """One guarded block, on the event loop or in a thread."""

    __slots__ = ("_block", "_guards", "_number")

    def __init__(self, guards: Guards, task_id: str, lock: str, token: int) -> None:
        self._guards = guards
        self._block = (task_id, lock, token)
        self._number = 0

    def __enter__(self) -> None:
        self._number = self._guards.run(partial(self._guards.begin, *self._block))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._guards.run(partial(self._guards.end, *self._block, number=self._number))
        except LockNotHeldError:
            if error is None:
                raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _key(number: int) -> str:
    return f"guard:{number}"
