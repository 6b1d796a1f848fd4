"""Group commit, the half without a dialect: units are queued, committed together, numbered, settled and told of.

The other half, a `GroupWriter`, writes a group in one transaction and makes it durable. Each unit still succeeds or
fails alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Protocol

from ai_whisperer.core.recent import NOTE_BYTES, size_of_params
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.retention import Horizon
from ai_whisperer.errors import StoreError, StoreFailedError, StoreInUseError, StoreRefusedError, WhispererError
from ai_whisperer.store.base import FailureListener, Listener, Unit
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.shapes import Shape
from ai_whisperer.store.tables import Row, encode

Pending = tuple[Unit, "asyncio.Future[None]"]
Done = Callable[[BaseException | None], None]
"""Is called on the event loop when a group is durable, or with the error if it is not."""
Mark = tuple[dict[str, int], int]

_log = logging.getLogger(__name__)

_session_of = attrgetter("session_id")
_NOBODY: frozenset[str] = frozenset()


class Group:
    """Units that go into one transaction: the numbers of their notifications, and which of them were refused.

    A writer writes and numbers the units that are `pending`. If one cannot be written, it begins `anew`, with each unit
    by itself.
    """

    __slots__ = (
        "_known",
        "_numbers",
        "_packing",
        "banned",
        "deleted",
        "horizons",
        "notifications",
        "pending",
        "sizes",
        "written",
    )

    def __init__(
        self, pending: list[Pending], known: dict[str, int], banned: set[FailureListener], packing: Packing
    ) -> None:
        """`known` has the last number of sessions as it is on disk.

        `banned` is whose units are refused. If there are any, each unit has to be written by itself.
        """
        self._known = known
        self._packing = packing
        self.banned = banned
        self._numbers: dict[str, int] = {}
        self.pending = pending
        self.written = pending
        self.notifications: list[Note] = []
        self.sizes: list[int] = []
        self.deleted: frozenset[str] = _NOBODY
        self.horizons: tuple[Horizon, ...] = ()

    def number(self, pending: Iterable[Pending], last_seq_of: Callable[[str], int]) -> list[Row]:
        """Give the notifications of these units their numbers; returns their rows, for `INSERT_NOTIFICATION`.

        `last_seq_of` tells the last number of a session of which it is not known.
        """
        rows: list[Row] = []
        numbers, sizes, notifications, packers = self._numbers, self.sizes, self.notifications, self._packing.packers
        session: Any = None
        seq = 0
        for unit, _ in pending:
            if unit.deleted_sessions:
                self._forget(unit.deleted_sessions)
                session = None
            if unit.horizons:
                self.horizons += unit.horizons
            for note in unit.notes:
                if note.session_id is not session:
                    if session is not None:
                        numbers[session] = seq
                    session = note.session_id
                    seq = numbers.get(session) or self._last(session, last_seq_of)
                note.seq = seq = seq + 1
                told = note.told
                shape, pack, short_bytes = packers.get(type(told)) or self._packing.packer(type(told))
                packed = pack(told, note.cause)
                rows.append((session, seq, note.at, shape, packed))
                length = len(packed)
                sizes.append(
                    NOTE_BYTES + 4 * length if length <= short_bytes else size_of_params(encode(told).decode())
                )
            if unit.notes:
                numbers[session] = seq
                notifications += unit.notes
        return rows

    def unknown_sessions(self) -> set[str]:
        """Those with notifications in this group whose last number is not known.

        A writer for whom that takes time reads it before it numbers.
        """
        gone = {session_id for unit, _ in self.pending for session_id in unit.deleted_sessions}
        told = {note.session_id for unit, _ in self.pending for note in unit.notes}
        return {session_id for session_id in told if session_id in gone or session_id not in self._known}

    @property
    def shapes(self) -> list[Shape]:
        """Those that are not in the store yet: they are put beside what was numbered."""
        return self._packing.fresh

    def _last(self, session_id: str, last_seq_of: Callable[[str], int]) -> int:
        """The last number of a session before this group."""
        known = None if session_id in self.deleted else self._known.get(session_id)
        return last_seq_of(session_id) if known is None else known

    def _forget(self, session_ids: Iterable[str]) -> None:
        """These sessions are deleted."""
        self.deleted = self.deleted.union(session_ids)
        for session_id in session_ids:
            self._numbers.pop(session_id, None)

    def anew(self) -> None:
        """Nothing of the group is written."""
        self._numbers, self.deleted, self.horizons = {}, _NOBODY, ()
        self.notifications, self.sizes = [], []

    def one_by_one(self) -> Iterator[Pending]:
        """Each unit by itself, but for those of whoever had one refused; it is to be accepted or refused."""
        self.written = []
        for pending in self.pending:
            if pending[0].on_refused in self.banned:
                _refuse(pending[1], StoreRefusedError())
            else:
                yield pending

    def mark(self) -> Mark:
        """What is numbered so far, to come back to."""
        return dict(self._numbers), len(self.notifications)

    def accept(self, pending: Pending) -> None:
        """The unit is written, and the shapes that were new with it."""
        self.written.append(pending)
        self._packing.fresh.clear()

    def refuse(self, pending: Pending, error: Exception, *, back_to: Mark) -> None:
        """The unit cannot be written, and nothing of it is. Its later ones are refused too."""
        self._numbers, count = back_to
        del self.notifications[count:], self.sizes[count:]
        refusal = StoreRefusedError(f"The store refused the change: {error}. Nothing of it was written.")
        unit, future = pending
        _refuse(future, refusal)
        if unit.on_refused is not None:
            self.banned.add(unit.on_refused)
            unit.on_refused(refusal)

    def take_notifications(self) -> tuple[list[Note], list[int]]:
        """Those of a group that is durable, and their sizes. Their numbers are known from now on."""
        if self.deleted:
            for session_id in self.deleted:
                self._known.pop(session_id, None)
        self._known.update(self._numbers)
        if self.written is self.pending:  # or else each that was accepted has settled them
            self._packing.fresh.clear()
        taken = self.notifications, self.sizes
        self.notifications, self.sizes = [], []
        return taken


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
            _refuse(future, self._failure)
            return future
        for session_id in unit.deleted_sessions:
            if session_id in self._listeners:
                _refuse(future, StoreInUseError(f"The session '{session_id}' is open. Close it, then delete it."))
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
            _refuse(future, self._failure)
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


def _refuse(future: asyncio.Future[None], error: WhispererError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # mark as seen: not everyone who submits waits
