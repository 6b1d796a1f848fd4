"""Group commit, SQLite's half: a group in one transaction on one connection.

Statements run on the event loop's thread, the commit with its fsync on a thread of its own. Running the statements on
the other thread too would be far slower, not faster: SQLite's binding gives up the interpreter lock around each
statement and a busy event loop lets a thread have it back only every few milliseconds (measured: 650 µs a row against
2 µs). So a group costs the event loop some microseconds a row, and waiting for the disk is the other thread's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import apsw

from ai_whisperer.errors import StoreError, StoreFullError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.group import Group, Pending
from ai_whisperer.store.groups import Done
from ai_whisperer.store.operations import INSERT_NOTIFICATION
from ai_whisperer.store.shapes import Shape
from ai_whisperer.store.sqlite import queries
from ai_whisperer.store.sqlite.committers import Committer
from ai_whisperer.store.sqlite.custody import LOOK_SECONDS, Custody
from ai_whisperer.store.sqlite.statements import STATEMENTS

_REFUSALS = (apsw.ConstraintError, apsw.MismatchError, TypeError, ValueError, OverflowError, RecursionError)
"""What a unit that cannot be written raises; it fails alone."""


class SqliteWriter:
    """See `GroupWriter` for the contract."""

    def __init__(self, connection: apsw.Connection, committer: Committer, custody: Custody | None = None) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._committer = committer
        self._custody = custody
        self._look_at = 0.0
        self.rows_in_group = committer.rows_in_group

    def commit(self, group: Group, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        custody, forget = self._custody, None
        if custody is not None and (now := loop.time()) >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            custody.check()
        self._write(group)
        if custody is not None and (group.deleted or group.horizons):
            forget = custody.acknowledged.forget(group.deleted, group.horizons)
        self._committer.commit(self._connection, done, units=len(group.pending), before=forget)

    def committed(self, group: Group, loop: asyncio.AbstractEventLoop) -> None:
        if self._custody is not None and group.notifications:
            last = group.notifications[-1]
            if last.session_id not in group.deleted:
                self._custody.acknowledged.note(last, loop)

    def explained(self, cause: BaseException) -> StoreError | None:
        return StoreFullError() if isinstance(cause, apsw.FullError) else None

    def roll_back(self, failure: StoreError) -> None:
        try:
            if not self._connection.get_autocommit():
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            failure.add_note(f"The rollback failed too: {error}")

    def _write(self, group: Group) -> None:
        """Write the group into an open transaction; if one unit is refused, again with each unit by itself."""
        self._cursor.execute("BEGIN IMMEDIATE")
        if group.banned:
            self._write_one_by_one(group)
            return
        try:
            self._write_units(group, group.pending)
        except _REFUSALS:
            self._connection.execute("ROLLBACK")
            group.anew()
            self._connection.execute("BEGIN IMMEDIATE")
            self._write_one_by_one(group)

    def _write_one_by_one(self, group: Group) -> None:
        for pending in group.one_by_one():
            mark = group.mark()
            self._connection.execute("SAVEPOINT unit")
            try:
                self._write_units(group, (pending,))
            except _REFUSALS as error:
                self._connection.execute("ROLLBACK TO unit")
                group.refuse(pending, error, back_to=mark)
            else:
                group.accept(pending)
            self._connection.execute("RELEASE unit")

    def _write_units(self, group: Group, units: Sequence[Pending]) -> None:
        """Write the changes of these units, then the notifications of all of them."""
        execute, statements = self._cursor.execute, STATEMENTS
        for unit, _ in units:
            for operation, values in unit.changes:
                execute(statements[operation], values)
        rows = group.number(units, self._last_seq)
        if group.shapes:
            self._put(group.shapes)
        self._cursor.executemany(statements[INSERT_NOTIFICATION], rows)

    def _put(self, shapes: Sequence[Shape]) -> None:
        unit = Unit()
        for shape in shapes:
            unit.put_shape(shape)
        for operation, values in unit.changes:
            self._cursor.execute(STATEMENTS[operation], values)

    def _last_seq(self, session_id: str) -> int:
        ((seq,),) = self._connection.execute(queries.LAST_SEQ, (session_id,))
        return int(seq)
