"""Which store a session is kept in. Nothing else in the runtime knows more of it than its contract."""

from __future__ import annotations

from pathlib import Path

from ai_whisperer.store.base import Store
from ai_whisperer.store.sqlite import SqliteStore


async def open_store(data: str | Path | None) -> Store:
    """The store in the data folder, made if there is none; without a folder, one in memory.

    Raises a `StoreError` that says what to do.
    """
    return SqliteStore.in_memory() if data is None else SqliteStore.open(data)
