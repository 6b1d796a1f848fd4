"""Sessions that go as a whole: in slices, under a mark that a crash leaves behind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from ai_whisperer.errors import StoreInUseError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.tables import OF_A_SESSION, Row, Table

SLICE_ROWS = 300
"""So many rows of a session that is deleted go at once; the event loop is held up for a few milliseconds."""

_T = TypeVar("_T")


class StoreDeletion:
    """The part of the store that deletes sessions. See `Store` for the contract."""

    _groups: GroupCommit
    _queries: ModuleType

    def __init__(self) -> None:
        self._deleting: set[str] = set()

    @abstractmethod
    async def _all(self, sql: str, bindings: Row, convert: Callable[[Row], _T]) -> list[_T]: ...

    @abstractmethod
    async def _give_back(self) -> None:
        """Let the database become smaller by what holds nothing any more, if it does not do so by itself."""

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
            while await self._has_rows(table, session_id):
                unit = Unit()
                unit.delete_some(session_id, table, limit=SLICE_ROWS)
                await self._groups.submit(unit)
        unit = Unit()
        unit.end_deletion(session_id)
        await self._groups.submit(unit)
        self._deleting.discard(session_id)
        await self._give_back()

    async def _has_rows(self, table: Table[Any], session_id: str) -> bool:
        return bool(await self._all(self._queries.HAS_ROWS[table], (session_id,), bool))

    def _check_not_deleting(self, session_id: str) -> None:
        if session_id in self._deleting:
            raise StoreInUseError(f"The session '{session_id}' is being deleted or imported. Wait until that is done.")
