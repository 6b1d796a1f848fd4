"""One change of a session: decided in memory, told in the log, and made durable as one unit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.store.base import Store, Unit


class Home(Protocol):
    """What a decision needs of the session that it is about."""

    session_id: str
    store: Store
    reads: Reads

    def tell_waiters(self, task: TaskRecord, durable: asyncio.Future[None]) -> None: ...


class Decision(msgspec.Struct, eq=False):
    """A change that was decided: the unit that makes it durable, and what follows from it.

    What is decided is true in memory at once and goes to the store in the order in which it was decided: there is
    never an await between a change in memory and its `submit`.
    """

    _home: Home
    cause: str
    at: float
    unit: Unit
    _follow_ups: list[Callable[[], object]] | None = None
    _ended: list[TaskRecord] | None = None
    _durable_calls: list[Callable[[], object]] | None = None
    _readable_calls: list[Callable[[], object]] | None = None

    def tell(self, told: Told) -> None:
        self.unit.notes.append(Note(self._home.session_id, self.cause, self.at, told))

    def then(self, follow_up: Callable[[], object]) -> None:
        """Call this right after the unit was handed to the store: what it decides comes later in the log."""
        if self._follow_ups is None:
            self._follow_ups = []
        self._follow_ups.append(follow_up)

    def task_ended(self, task: TaskRecord) -> None:
        """Whoever waits for this task is told once the unit is durable."""
        if self._ended is None:
            self._ended = []
        self._ended.append(task)

    def when_durable(self, callback: Callable[[], object]) -> None:
        """Call this when the unit is durable, or when it never will be."""
        if self._durable_calls is None:
            self._durable_calls = []
        self._durable_calls.append(callback)

    def when_readable(self, forget: Callable[[], object]) -> None:
        """Call this when whoever reads the store finds the unit there, so that memory need not know it any more."""
        if self._readable_calls is None:
            self._readable_calls = []
        self._readable_calls.append(forget)

    def submit(self) -> asyncio.Future[None]:
        """Hand the unit to the store. The future is done when it is durable: only then tell the outside."""
        durable = self._home.store.submit(self.unit)
        if self._ended is not None:
            for task in self._ended:
                self._home.tell_waiters(task, durable)
        if self._durable_calls is not None:
            for callback in self._durable_calls:
                durable.add_done_callback(lambda _, callback=callback: callback())  # type: ignore[misc]
        if self._readable_calls is not None:
            durable.add_done_callback(self._forget)
        if self._follow_ups is not None:
            for follow_up in self._follow_ups:
                follow_up()
        return durable

    def commit(self) -> asyncio.Future[None]:
        """Submit; await what is returned to wait until it is durable. Whoever gives up waiting takes nothing back."""
        durable = self.submit()
        is_watched = self._durable_calls or self._readable_calls or self._ended
        return asyncio.shield(durable) if is_watched else durable

    def _forget(self, durable: asyncio.Future[None]) -> None:
        if durable.cancelled():  # whoever waited for it was; the unit is on its way all the same
            self._home.store.flushing().add_done_callback(self._forget)
            return
        for forget in self._readable_calls or ():
            self._home.reads.under_way.when_seen(forget)
