"""What all stores have in common: units are committed in groups, and each part of the contract is done by one class."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext

from ai_whisperer.domain.clock import Clock
from ai_whisperer.store.base import FailureListener, Listener, Unit
from ai_whisperer.store.deletion import StoreDeletion
from ai_whisperer.store.groups import GroupCommit
from ai_whisperer.store.importing import StoreImport
from ai_whisperer.store.reading import StoreReads
from ai_whisperer.store.retention import StoreRetention


class StoreParts(StoreReads, StoreDeletion, StoreImport, StoreRetention):
    """A store but for its database: see `Store` for the contract."""

    clock: Clock | None = None
    is_far = False

    def __init__(self, groups: GroupCommit) -> None:
        StoreDeletion.__init__(self)
        StoreImport.__init__(self)
        self._groups = groups

    @property
    def commits(self) -> int:
        """How many groups were committed since the store was opened."""
        return self._groups.commits

    def submit(self, unit: Unit) -> asyncio.Future[None]:
        return self._groups.submit(unit)

    async def claim(self, session_id: str) -> bool:  # noqa: ARG002 - all are ours
        return False

    async def release(self, session_id: str, *, files_left: bool = False) -> None:
        """There is nobody else who could have it."""

    def pinned(self, session_id: str) -> AbstractContextManager[None]:  # noqa: ARG002 - all are ours
        return nullcontext()

    async def is_ours(self, session_id: str) -> bool:  # noqa: ARG002 - all are ours
        return True

    def listen(self, session_id: str, on_committed: Listener, on_failure: FailureListener) -> None:
        self._check_not_deleting(session_id)
        self._groups.listen(session_id, on_committed, on_failure)

    def unlisten(self, session_id: str) -> None:
        self._groups.unlisten(session_id)

    def watch(self, on_failure: FailureListener) -> None:
        self._groups.watch(on_failure)

    @property
    def is_flushed(self) -> bool:
        return self._groups.is_flushed

    async def flushed(self) -> None:
        await self._groups.flushed()

    def flushing(self) -> asyncio.Future[None]:
        return self._groups.flushing()

    def on_their_way(self, session_id: str) -> tuple[int, float | None]:
        return self._groups.on_their_way(session_id)
