"""Sessions that go as a whole: in slices, under a mark that a crash leaves behind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from ai_whisperer.errors import StoreInUseError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.sqlite import queries
from ai_whisperer.store.sqlite.committers import Committer
from ai_whisperer.store.sqlite.statements import FREE_PAGE, NOTHING
from ai_whisperer.store.tables import OF_A_SESSION, Row, Table

SLICE_ROWS = 300
"""So many rows of a session that is deleted go at once; the event loop is held up for a few milliseconds."""

SLICE_PAGES = 100
"""So many free pages go at once; that holds the event loop up for about a millisecond."""

_T = TypeVar("_T")


class SqliteDeletion:
    """The part of the store that deletes sessions. See `Store` for the contract."""

    _groups: GroupCommit
    _committer: Committer
    _gives_back: bool

    def __init__(self) -> None:
        self._deleting: set[str] = set()

    @abstractmethod
    def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]: ...

    async def delete_session(self, session_id: str) -> None:
        self._check_not_deleting(session_id)
        unit = Unit()
        unit.begin_deletion(session_id)
        begun = self._groups.submit(unit)
        self._deleting.add(session_id)
        try:
            await begun
        except StoreInUseError:
            self._deleting.discard(session_id)
            raise
        await self._delete_rest(session_id)

    def is_closed_off(self, session_id: str) -> bool:
        return session_id in self._deleting

    async def _delete_rest(self, session_id: str) -> None:
        """Delete all that is left of a session which is marked for that."""
        for table in OF_A_SESSION:
            while self._has_rows(table, session_id):
                unit = Unit()
                unit.delete_some(session_id, table, limit=SLICE_ROWS)
                await self._groups.submit(unit)
        unit = Unit()
        unit.end_deletion(session_id)
        await self._groups.submit(unit)
        self._deleting.discard(session_id)
        await self._free_pages()

    async def _free_pages(self) -> None:
        """Give back the pages that hold nothing, in slices; then the file is smaller, and its log is empty."""
        while free := self._pages_to_free():
            unit = Unit()
            unit.changes += [(FREE_PAGE, ())] * min(free, SLICE_PAGES)
            unit.changes.append((NOTHING, ()))
            await self._groups.submit(unit)
        last = Unit()
        last.changes.append((NOTHING, ()))
        self._committer.empty_log_soon()
        await self._groups.submit(last)

    def _pages_to_free(self) -> int:
        return self._all(queries.FREE_PAGES, (), lambda row: int(row[0]))[0] if self._gives_back else 0

    def _has_rows(self, table: Table[Any], session_id: str) -> bool:
        return bool(self._all(queries.HAS_ROWS[table], (session_id,), bool))

    def _check_not_deleting(self, session_id: str) -> None:
        if session_id in self._deleting:
            raise StoreInUseError(f"The session '{session_id}' is being deleted or imported. Wait until that is done.")
