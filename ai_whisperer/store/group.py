"""One group of units that go into a transaction together: their numbers, and which of them were refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ai_whisperer.core.recent import NOTE_BYTES, size_of_params
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.retention import Horizon
from ai_whisperer.errors import StoreRefusedError, WhispererError
from ai_whisperer.store.base import FailureListener, Unit
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.shapes import Shape
from ai_whisperer.store.tables import Row, encode

Pending = tuple[Unit, "asyncio.Future[None]"]
Mark = tuple[dict[str, int], int]

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
            notes = unit.notes
            if not notes:
                continue
            for note in notes:
                if note.session_id is not session:
                    if session is not None:
                        numbers[session] = seq
                    session = note.session_id
                    seq = numbers.get(session) or self._last(session, last_seq_of)
                note.seq = seq = seq + 1
                told = note.told
                try:
                    shape, pack, short_bytes = packers[type(told)]
                except KeyError:
                    shape, pack, short_bytes = self._packing.packer(type(told))
                packed = pack(told, note.cause)
                rows.append((session, seq, note.at, shape, packed))
                length = len(packed)
                sizes.append(
                    NOTE_BYTES + 4 * length if length <= short_bytes else size_of_params(encode(told).decode())
                )
            numbers[session] = seq
            notifications += notes
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
                refuse(pending[1], StoreRefusedError())
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
        refuse(future, refusal)
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


def refuse(future: asyncio.Future[None], error: WhispererError) -> None:
    """Let whoever submitted a unit know that it is not written."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # mark as seen: not everyone who submits waits
