"""What is deleted takes no room on the disk any more."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw

from ai_whisperer.store.base import Unit
from ai_whisperer.store.sqlite.files import DATABASE_NAME, wal_of
from ai_whisperer.store.sqlite.store import SLICE_PAGES, SqliteStore
from tests.contract.records import tell

NOTES = 600


async def bulky(store: SqliteStore, session_id: str) -> None:
    """Fill a session with some megabytes."""
    for number in range(NOTES):
        unit = Unit()
        tell(unit, session_id, "told", params={"text": f"{number:08}" * 1000})
        await store.submit(unit)


def test_a_database_is_smaller_by_what_was_in_a_deleted_session(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        await bulky(store, "other")
        await bulky(store, "s")
        both = path.stat().st_size
        served: list[int] = []
        deleting = asyncio.ensure_future(store.delete_session("s"))
        while not deleting.done():
            unit = Unit()
            tell(unit, "third", "told", params={})
            await store.submit(unit)
            served.append(store._pages_to_free())
        assert len(set(served)) > both / 2 / 4096 / SLICE_PAGES, "in slices, between which others are served"
        assert store._pages_to_free() == 0
        assert path.stat().st_size < 0.6 * both
        assert wal_of(path).stat().st_size < 0.6 * both
        assert len(await store.notifications("other", after=0, limit=10_000)) == NOTES
        assert store._writing.pragma("integrity_check") == "ok"
        await store.close()

    asyncio.run(main())


def test_a_database_that_was_made_otherwise_is_rebuilt_so_that_it_can_become_smaller(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME

    async def fill() -> None:
        store = SqliteStore.open(tmp_path)
        await bulky(store, "s")
        await bulky(store, "other")
        await store.close()

    async def delete() -> None:
        store = SqliteStore.open(tmp_path)
        before = path.stat().st_size
        await store.delete_session("s")
        assert path.stat().st_size < 0.6 * before
        assert len(await store.notifications("other", after=0, limit=10_000)) == NOTES
        await store.close()

    asyncio.run(fill())
    with closing(apsw.Connection(str(path))) as old:
        old.pragma("journal_mode", "delete")
        old.execute("PRAGMA auto_vacuum=NONE; VACUUM")
        old.pragma("journal_mode", "wal")
    asyncio.run(delete())
