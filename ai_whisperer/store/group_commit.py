"""The one writer: everything that waits is committed together, each unit still succeeds or fails alone.

Statements run on the event loop's thread, the commit with its fsync on a thread of its own. Running the statements on
the other thread too would be far slower, not faster: SQLite's binding gives up the interpreter lock around each
statement and a busy event loop lets a thread have it back only every few milliseconds (measured: 650 µs a row against
2 µs). So a group costs the event loop some microseconds a row, and waiting for the disk is the other thread's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from operator import attrgetter

import apsw

from ai_whisperer.core.recent import size_of_params
from ai_whisperer.domain.committed import Committed
from ai_whisperer.errors import (
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreInUseError,
    StoreRefusedError,
    WhispererError,
)
from ai_whisperer.store import queries, rows
from ai_whisperer.store.base import FailureListener, Listener, Unit
from ai_whisperer.store.committers import Committer
from ai_whisperer.store.custody import LOOK_SECONDS, Custody

_Pending = tuple[Unit, "asyncio.Future[None]"]

_log = logging.getLogger(__name__)

_session_of = attrgetter("session_id")

_REFUSALS = (apsw.ConstraintError, apsw.MismatchError, TypeError, ValueError, OverflowError, RecursionError)
"""What a unit that cannot be written raises; it fails alone."""


class GroupCommitWriter:
    """Takes units and commits them in groups on one connection."""

    def __init__(self, connection: apsw.Connection, committer: Committer, custody: Custody | None = None) -> None:
        self._custody = custody
        self._look_at = 0.0
        self._deleted: set[str] = set()
        self._connection = connection
        self._cursor = connection.cursor()
        self._committer = committer
        self._waiting: deque[_Pending] = deque()
        self._flying: list[_Pending] = []
        self._numbered: list[Committed] = []
        self._sizes: list[int] = []  # of the numbered ones
        self._note_rows: list[rows.Row] = []  # of the numbered ones that are not written yet
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
        self._listeners.pop(session_id, None)

    def watch(self, on_failure: FailureListener) -> None:
        self._watchers.append(on_failure)

    def submit(self, unit: Unit) -> asyncio.Future[None]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()  # once: each time costs a system call
        future = self._loop.create_future()
        if self._failure is not None:
            future.set_exception(self._failure)
            future.exception()  # mark as seen: not everyone who submits waits
            return future
        for session_id in unit.deleted_sessions:
            if session_id in self._listeners:
                _refuse(future, StoreInUseError(f"The session '{session_id}' is open. Close it, then delete it."))
                return future
        self._submitted += 1
        self._waiting.append((unit, future))
        if not self._scheduled and not self._flying:
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
            flushed = asyncio.get_running_loop().create_future()
            self._flushing.append((self._submitted, flushed))
            await flushed

    def on_their_way(self, session_id: str) -> tuple[int, float | None]:
        """How many notifications of the session were submitted and are not published, and when the last of them was."""
        times = [note.at for note in self._numbered if note.session_id == session_id]
        times += [note[3] for unit, _ in self._waiting for note in unit.notes if note[0] == session_id]
        return len(times), times[-1] if times else None

    def _flush(self) -> None:
        self._scheduled = False
        if self._flying or not self._waiting or self._failure is not None:
            return
        self._flying = self._take_group()
        if self._loop is not None:
            self._flying_since = self._loop.time()
        try:
            if self._custody is not None and self._flying_since >= self._look_at:
                self._look_at = self._flying_since + LOOK_SECONDS
                self._custody.check()
            written = self._write(self._flying)
            forget = None
            if self._deleted and self._custody is not None:
                forget = self._custody.acknowledged.forget(self._deleted)
            self._committer.commit(
                self._connection,
                lambda failure: self._committed(written, failure),
                units=len(self._flying),
                before=forget,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
            self._fail(error)

    def _take_group(self) -> list[_Pending]:
        group: list[_Pending] = []
        size = 0
        waiting, most = self._waiting, self._committer.rows_in_group
        while waiting and size < most:
            pending = waiting.popleft()
            unit = pending[0]
            size += len(unit.writes) + len(unit.notes)
            group.append(pending)
        return group

    def _write(self, group: Sequence[_Pending]) -> list[_Pending]:
        """Write the group into an open transaction; if one unit is refused, again with each unit by itself."""
        before = dict(self._last_seq)
        self._numbered, self._sizes, self._note_rows = [], [], []
        self._deleted = set()
        self._connection.execute("BEGIN IMMEDIATE")
        if self._banned:
            return self._write_one_by_one(group)
        try:
            for unit, _ in group:
                self._write_unit(unit)
            self._write_notes()
        except _REFUSALS:
            self._connection.execute("ROLLBACK")
            self._last_seq = before
            self._numbered, self._sizes, self._note_rows = [], [], []
            self._connection.execute("BEGIN IMMEDIATE")
            return self._write_one_by_one(group)
        return list(group)

    def _write_one_by_one(self, group: Sequence[_Pending]) -> list[_Pending]:
        written: list[_Pending] = []
        for unit, future in group:
            if unit.on_refused in self._banned:
                _refuse(future, StoreRefusedError())
                continue
            before, numbered = dict(self._last_seq), len(self._numbered)
            self._connection.execute("SAVEPOINT unit")
            try:
                self._write_unit(unit)
                self._write_notes()
            except _REFUSALS as error:
                self._connection.execute("ROLLBACK TO unit")
                self._last_seq = before
                self._note_rows = []
                del self._numbered[numbered:], self._sizes[numbered:]
                refusal = StoreRefusedError(f"The store refused the change: {error}. Nothing of it was written.")
                _refuse(future, refusal)
                if unit.on_refused is not None:
                    self._banned.add(unit.on_refused)
                    unit.on_refused(refusal)
            else:
                written.append((unit, future))
            self._connection.execute("RELEASE unit")
        return written

    def _write_unit(self, unit: Unit) -> None:
        """Write the changes and give the notifications their numbers; `_write_notes` writes these."""
        execute = self._cursor.execute
        for sql, row in unit.writes:
            execute(sql, row)
        last_seq = self._last_seq
        for session_id in unit.deleted_sessions:
            last_seq.pop(session_id, None)
            self._deleted.add(session_id)
        for session_id, name, cause, at, told in unit.notes:
            seq = last_seq.get(session_id)
            if seq is None:
                ((seq,),) = self._connection.execute(queries.LAST_SEQ, (session_id,))
            last_seq[session_id] = seq = seq + 1
            text = rows.text_of(told)
            self._note_rows.append((session_id, seq, name, cause, at, text))
            self._sizes.append(size_of_params(text))
            self._numbered.append(Committed(seq=seq, session_id=session_id, name=name, cause=cause, at=at, told=told))

    def _write_notes(self) -> None:
        """Write the notifications that were numbered since this was called last."""
        self._cursor.executemany(queries.INSERT_NOTIFICATION, self._note_rows)
        self._note_rows = []

    def _committed(self, written: Sequence[_Pending], failure: BaseException | None) -> None:
        if failure is None:
            try:
                self._settle(written)
            except Exception as error:  # noqa: BLE001 - a listener failed: memory is not what is on disk
                failure = error
        if failure is not None:
            self._fail(failure)

    def _settle(self, written: Sequence[_Pending]) -> None:
        self._settled += len(self._flying)
        self.commits += 1
        if self._numbered:
            self._note_last(self._numbered[-1])
            self._publish()
        for _, future in written:
            if not future.done():
                future.set_result(None)
        self._flying = []
        self._tell_flushed()
        if self._waiting and not self._scheduled and self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._flush)  # those who were just released may have more to add

    def _note_last(self, last: Committed) -> None:
        if self._custody is not None and self._loop is not None and last.session_id not in self._deleted:
            self._custody.acknowledged.note(last, self._loop)

    def _publish(self) -> None:
        numbered, sizes = self._numbered, self._sizes
        self._numbered, self._sizes = [], []
        by_session: dict[str, tuple[list[Committed], list[int]]] = dict.fromkeys(
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
        self._failure = _failure_of(cause)
        _log.error("the store has failed: %s", self._failure, exc_info=None if cause is self._failure else cause)
        try:
            if not self._connection.get_autocommit():
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            self._failure.add_note(f"The rollback failed too: {error}")
        for _, future in (*self._flying, *self._waiting):
            _refuse(future, self._failure)
        self._flying = []
        self._waiting.clear()
        for on_failure in [*(listener[1] for listener in self._listeners.values()), *self._watchers]:
            try:
                on_failure(self._failure)
            except Exception:  # noqa: BLE001 - the others have to be told as well
                _log.exception("somebody could not be told that the store has failed")
        self._tell_flushed()


def _refuse(future: asyncio.Future[None], error: WhispererError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # mark as seen: not everyone who submits waits


def _failure_of(cause: BaseException) -> StoreError:
    if isinstance(cause, StoreError):
        return cause
    if isinstance(cause, apsw.FullError):
        error: StoreError = StoreFullError()
    else:
        error = StoreFailedError(
            f"A commit failed ({cause}), so the runtime stopped. Fix the cause and start again; "
            "nothing that was accepted is lost."
        )
    error.__cause__ = cause
    return error
