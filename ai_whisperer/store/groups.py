"""Group commit, the half without a dialect: units are queued, committed together, numbered, settled and told of.

The other half, a `GroupWriter`, writes a group in one transaction and makes it durable. Each unit still succeeds or
fails alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from ai_whisperer.domain.note import Note
from ai_whisperer.errors import StoreError, StoreFailedError, StoreInUseError
from ai_whisperer.store.base import FailureListener, Listener, Unit
from ai_whisperer.store.group import Group, Pending, refuse
from ai_whisperer.store.packing import Packing

Done = Callable[[BaseException | None], None]
"""Is called on the event loop when a group is durable, or with the error if it is not."""

_log = logging.getLogger(__name__)

_session_of = attrgetter("session_id")


class GroupWriter(Protocol):
    """The half of group commit that knows the database. One group is under way at a time.

    `rows_in_group` is how many changes and notifications it wants to see together.
    """

    @property
    def rows_in_group(self) -> int: ...

    def commit(self, group: Group, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        """Write the group in one transaction and make it durable, then call back, at once or later.

        A unit that cannot be written is refused, alone. Whatever else goes wrong, raised or told, ends the store.
        """
        ...

    def committed(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        """Hear that the group is durable, before anybody is told of what is in it."""
        ...

    def explained(self, cause: BaseException) -> StoreError | None:
        """What the cause of a failure means to a person, if that is known."""
        ...

    def roll_back(self, failure: StoreError) -> None:
        """End a transaction that is open. What goes wrong with that is added to the failure as a note."""
        ...


class GroupCommit:
    """Takes units, has them committed in groups, and tells of what was committed."""

    def __init__(self, writer: GroupWriter, packing: Packing) -> None:
        self._writer = writer
        self._packing = packing
        self._waiting: deque[Pending] = deque()
        self._flying: Group | None = None
        self._last_seq: dict[str, int] = {}
        self._listeners: dict[str, tuple[Listener, FailureListener]] = {}
        self._watchers: list[FailureListener] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flying_since = 0.0
        self._submitted = 0
        self._settled = 0
        self._flushing: list[tuple[int, asyncio.Future[None]]] = []
        self._banned: set[FailureListener] = set()
        self._scheduled = False
        self._failure: StoreError | None = None
        self.commits = 0

    def listen(self, session_id: str, on_committed: Listener, on_failure: FailureListener) -> None:
        if session_id in self._listeners:
            raise StoreInUseError(f"The session '{session_id}' is open already. Close it first, or use another.")
        self._listeners[session_id] = (on_committed, on_failure)

    def unlisten(self, session_id: str) -> None:
        """Whoever had something refused and closes the session decides nothing more: others commit together again."""
        known = self._listeners.pop(session_id, None)
        if known is not None and known[1] in self._banned and not self._has_units_of(known[1]):
            self._banned.discard(known[1])

    def _has_units_of(self, on_refused: FailureListener) -> bool:
        flying = () if self._flying is None else self._flying.pending
        return any(unit.on_refused is on_refused for unit, _ in (*flying, *self._waiting))

    def watch(self, on_failure: FailureListener) -> None:
        self._watchers.append(on_failure)
        if self._failure is not None:
            on_failure(self._failure)

    def forget(self, session_id: str) -> None:
        """The last number of the session is what the database says: others may have written to it."""
        self._last_seq.pop(session_id, None)

    def stop(self, failure: StoreError) -> None:
        """Take nothing more, as when a commit has failed."""
        self._fail(failure)

    def submit(self, unit: Unit) -> asyncio.Future[None]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()  # once: each time costs a system call
        future = self._loop.create_future()
        if self._failure is not None:
            refuse(future, self._failure)
            return future
        for session_id in unit.deleted_sessions:
            if session_id in self._listeners:
                refuse(future, StoreInUseError(f"The session '{session_id}' is open. Close it, then delete it."))
                return future
        self._submitted += 1
        self._waiting.append((unit, future))
        if not self._scheduled and self._flying is None:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        return future

    @property
    def failure(self) -> StoreError | None:
        return self._failure

    @property
    def commit_seconds(self) -> float:
        """How long the commit under way has taken so far; 0 if there is none."""
        return self._loop.time() - self._flying_since if self._flying and self._loop is not None else 0.0

    @property
    def is_flushed(self) -> bool:
        return self._settled >= self._submitted or self._failure is not None

    async def flushed(self) -> None:
        """Wait until all that was submitted so far is on disk, or refused, or the store has failed."""
        if not self.is_flushed:
            await self.flushing()

    def flushing(self) -> asyncio.Future[None]:
        """Is done when all that was submitted so far is on disk, or refused, or the store has failed."""
        flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.is_flushed:
            flushed.set_result(None)
        else:
            self._flushing.append((self._submitted, flushed))
        return flushed

    def on_their_way(self, session_id: str) -> tuple[int, float | None]:
        """How many notifications of the session were submitted and are not published, and when the last of them was."""
        flying = () if self._flying is None else self._flying.notifications
        times = [note.at for note in flying if note.session_id == session_id]
        times += [note.at for unit, _ in self._waiting for note in unit.notes if note.session_id == session_id]
        return len(times), times[-1] if times else None

    def _flush(self) -> None:
        self._scheduled = False
        loop = self._loop
        if self._flying is not None or not self._waiting or self._failure is not None or loop is None:
            return
        self._flying = group = Group(self._take_group(), self._last_seq, self._banned, self._packing)
        self._flying_since = loop.time()
        try:
            self._writer.commit(group, loop, self._committed)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
            self._fail(error)

    def _take_group(self) -> list[Pending]:
        group: list[Pending] = []
        size = 0
        waiting, most = self._waiting, self._writer.rows_in_group
        while waiting and size < most:
            pending = waiting.popleft()
            unit = pending[0]
            size += len(unit.changes) + len(unit.notes)
            group.append(pending)
        return group

    def _committed(self, failure: BaseException | None) -> None:
        if failure is None:
            try:
                self._settle()
            except Exception as error:  # noqa: BLE001 - a listener failed: memory is not what is on disk
                failure = error
        if failure is not None:
            self._fail(failure)

    def _settle(self) -> None:
        group, loop = self._flying, self._loop
        if group is None or loop is None:
            return  # it failed meanwhile
        self._settled += len(group.pending)
        self.commits += 1
        self._writer.committed(group, loop)
        self._publish(*group.take_notifications())
        for _, future in group.written:
            if not future.done():
                future.set_result(None)
        self._flying = None
        self._tell_flushed()
        if self._waiting and not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._flush)  # those who were just released may have more to add

    def _publish(self, numbered: list[Note], sizes: list[int]) -> None:
        by_session: dict[str, tuple[list[Note], list[int]]] = dict.fromkeys(
            map(_session_of, numbered), (numbered, sizes)
        )
        if len(by_session) > 1:
            by_session = {session_id: ([], []) for session_id in by_session}
            for note, size in zip(numbered, sizes, strict=True):
                notes, sizes_of_notes = by_session[note.session_id]
                notes.append(note)
                sizes_of_notes.append(size)
        for session_id, committed in by_session.items():
            if session_id in self._listeners:
                self._listeners[session_id][0](*committed)

    def _tell_flushed(self) -> None:
        while self._flushing and (self._flushing[0][0] <= self._settled or self._failure is not None):
            flushed = self._flushing.pop(0)[1]
            if not flushed.done():
                flushed.set_result(None)

    def _fail(self, cause: BaseException) -> None:
        """Stop for good: a commit that failed may or may not be on disk, only a restart can tell."""
        if self._failure is not None:
            return
        self._failure = self._failure_of(cause)
        _log.error("the store has failed: %s", self._failure, exc_info=None if cause is self._failure else cause)
        self._writer.roll_back(self._failure)
        flying = () if self._flying is None else self._flying.pending
        for _, future in (*flying, *self._waiting):
            refuse(future, self._failure)
        self._flying = None
        self._waiting.clear()
        for on_failure in [*(listener[1] for listener in self._listeners.values()), *self._watchers]:
            try:
                on_failure(self._failure)
            except Exception:  # noqa: BLE001 - the others have to be told as well
                _log.exception("somebody could not be told that the store has failed")
        self._tell_flushed()

    def _failure_of(self, cause: BaseException) -> StoreError:
        if isinstance(cause, StoreError):
            return cause
        error = self._writer.explained(cause) or StoreFailedError(
            f"A commit failed ({cause}), so the runtime stopped. Fix the cause and start again; "
            "nothing that was accepted is lost."
        )
        error.__cause__ = cause
        return error
