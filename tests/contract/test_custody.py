"""What becomes of the files of a database that is taken away, and when it is noted that a session is deleted."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from ai_whisperer import accept_loss
from ai_whisperer.errors import StoreFailedError, StoreLostError
from ai_whisperer.store.sqlite import SqliteStore, committers
from ai_whisperer.store.sqlite.files import DATABASE_NAME, wal_of
from tests.contract.records import task, unit_with

RESCUED = "whisperer.rescued.db"
LOST = "whisperer.lost.db"


def taken_away(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replaced_by_a_backup(path: Path) -> None:
    backup = path.with_name("backup")
    shutil.copy(path, backup)
    backup.replace(path)


def lose(folder: Path, harm: Callable[[Path], None], *, tasks: int) -> str:
    """Fill a database, with pages that are free again, and take it from under its writer; returns what that says."""

    async def main() -> str:
        store = SqliteStore.open(folder)
        await asyncio.gather(*(store.submit(unit_with(task(f"t{each}"), note="x" * 50)) for each in range(tasks)))
        store._writing.execute("DELETE FROM task WHERE rowid % 1000 > 700")
        store._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        await asyncio.gather(*(store.submit(unit_with(task(f"u{each}"), note="x")) for each in range(20)))
        harm(folder / DATABASE_NAME)
        store._writer._look_at = 0.0
        with pytest.raises(StoreFailedError, match="was removed or replaced") as failed:
            await store.submit(unit_with(task("late"), note="x"))
        await store.close()
        return str(failed.value)

    return asyncio.run(main())


def ids_in(path: Path) -> set[str]:
    connection = apsw.Connection(str(path))
    try:
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
        return {row[0] for row in connection.execute("SELECT id FROM task")}
    finally:
        connection.close()


@pytest.mark.parametrize("harm", [taken_away, moved, replaced_by_a_backup])
def test_what_was_rescued_can_be_put_in_place_of_a_large_database(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    told = lose(tmp_path, harm, tasks=3_000)
    (tmp_path / RESCUED).replace(tmp_path / DATABASE_NAME)
    SqliteStore.open(tmp_path).abandon()
    left = ids_in(tmp_path / DATABASE_NAME)
    assert "late" not in left
    assert {f"u{each}" for each in range(20)} < left
    assert 2_000 <= len(left) < 3_020
    assert "whisperer.lost.db-wal" in told


def test_a_database_that_was_moved_can_be_put_back_with_its_log(tmp_path: Path) -> None:
    lose(tmp_path, moved, tasks=300)
    (tmp_path / "moved.db").rename(tmp_path / LOST)
    assert ids_in(tmp_path / LOST) == ids_in(tmp_path / RESCUED)


def test_the_log_of_a_database_that_was_put_in_place_meanwhile_stays(tmp_path: Path) -> None:
    """A backup that was restored together with its log while the server ran."""

    def restored(path: Path) -> None:
        wal_of(path).unlink()
        wal_of(path).write_bytes(b"the log of the backup")
        replaced_by_a_backup(path)

    told = lose(tmp_path, restored, tasks=3)
    assert "There is another 'whisperer.db-wal'" in told
    assert wal_of(tmp_path / DATABASE_NAME).read_bytes() == b"the log of the backup"


def test_what_was_set_aside_before_stays_when_it_happens_again(tmp_path: Path) -> None:
    wal_of(tmp_path / LOST).write_bytes(b"of the first time")
    assert "whisperer.lost2.db-wal" in lose(tmp_path, taken_away, tasks=3)
    assert wal_of(tmp_path / LOST).read_bytes() == b"of the first time"


def test_the_log_is_set_aside_even_if_nothing_can_be_rescued(tmp_path: Path) -> None:
    (tmp_path / RESCUED).mkdir()
    told = lose(tmp_path, taken_away, tasks=3)
    assert "could not be saved" in told
    assert wal_of(tmp_path / LOST).stat().st_size > 0


@pytest.mark.parametrize("empty", [False, True])
def test_whoever_accepts_a_loss_keeps_the_log_whose_database_is_gone(tmp_path: Path, *, empty: bool) -> None:
    data = tmp_path / "data"
    store = SqliteStore.open(tmp_path)

    async def main() -> None:
        await store.submit(unit_with(task("one"), note="x"))
        shutil.copytree(tmp_path, data)  # as a process that is killed leaves it
        await store.close()

    asyncio.run(main())
    log = wal_of(data / DATABASE_NAME).read_bytes()
    assert log
    shutil.copy(data / DATABASE_NAME, tmp_path / "found again")
    if empty:
        os.truncate(data / DATABASE_NAME, 0)
    else:
        (data / DATABASE_NAME).unlink()
    with pytest.raises(StoreLostError):
        SqliteStore.open(data)
    accept_loss(data)
    SqliteStore.open(data).abandon()
    assert ids_in(data / DATABASE_NAME) == set()
    assert wal_of(data / LOST).read_bytes() == log
    shutil.copy(tmp_path / "found again", data / LOST)
    assert ids_in(data / LOST) == {"one"}


def test_a_log_that_has_its_database_stays_where_it_is_when_a_loss_is_accepted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    store = SqliteStore.open(tmp_path)

    async def main() -> None:
        await store.submit(unit_with(task("one"), note="x"))
        shutil.copytree(tmp_path, data)
        await store.close()

    asyncio.run(main())
    accept_loss(data)
    assert not wal_of(data / LOST).exists()
    SqliteStore.open(data).abandon()
    assert ids_in(data / DATABASE_NAME) == {"one"}


def test_a_deletion_is_noted_before_it_is_committed_and_not_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    fsync, commit = os.fsync, committers._commit

    def where(what: str) -> None:
        happened.append(f"{what} on {threading.current_thread().name}")

    def synced(file: int) -> None:
        where("note")
        fsync(file)

    def committed(connection: apsw.Connection) -> BaseException | None:
        where("commit")
        return commit(connection)

    async def main() -> None:
        monkeypatch.setattr(committers, "QUICK_SECONDS", 1_000.0)  # a unit that is alone is committed in place
        store = SqliteStore.open(tmp_path)
        for name in ("one", "two"):
            await store.submit(unit_with(task(name), note="x"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", synced)
            patch.setattr(committers, "_commit", committed)
            await store.delete_session("s")
        await store.close()

    asyncio.run(main())
    assert happened[:2] == ["note on whisperer-commit", "commit on whisperer-commit"]
    assert not [each for each in happened[2:] if each.startswith("note")]


def test_a_note_that_cannot_be_made_for_a_reason_of_ours_stops_the_store_and_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(_: int) -> None:
        raise RuntimeError("a surprise")

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        await store.submit(unit_with(task("one"), note="x"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", surprise)
            with pytest.raises(StoreFailedError, match="a surprise"):
                await store.delete_session("s")
        await store.close()

    asyncio.run(main())
    assert ids_in(tmp_path / DATABASE_NAME) == {"one"}
