"""What power cuts have shown about a data folder, one by one."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from ai_whisperer.errors import StoreError, StoreFullError, StoreReadOnlyError
from ai_whisperer.store import durable_folders
from ai_whisperer.store.attachments import AttachmentFiles
from ai_whisperer.store.durable_folders import make_durable
from ai_whisperer.store.folder_lock import lock_folder
from ai_whisperer.store.sqlite import SqliteStore, acknowledged
from ai_whisperer.store.sqlite.acknowledged import ACKNOWLEDGED_NAME, Acknowledged
from ai_whisperer.store.sqlite.opening import _log_writes_ahead
from ai_whisperer.testing.power import WrittenTree
from ai_whisperer.testing.power_vfs import Interruption, PoweredDisk, PoweredSystem, PowerVFS


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PoweredDisk:
    found = PoweredDisk(tmp_path / "data", WrittenTree())
    for module in (acknowledged, durable_folders):
        monkeypatch.setattr(module, "os", PoweredSystem(lambda: found))
    return found


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is synced, in its order."""
    found: list[Path] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        found.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return found


def test_a_new_folder_is_on_disk_with_all_new_folders_above_it(tmp_path: Path, synced: list[Path]) -> None:
    make_durable(tmp_path / "a" / "b" / "c")
    assert set(synced) == {tmp_path, tmp_path / "a", tmp_path / "a" / "b"}
    assert (tmp_path / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_there_is_synced_too_for_whoever_made_it_may_have_died(
    tmp_path: Path, synced: list[Path]
) -> None:
    make_durable(tmp_path)
    assert synced == [tmp_path.parent]


def test_a_folder_whose_parent_nobody_may_read_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(durable_folders, "sync_folder", refused)
    make_durable(tmp_path / "a")
    assert (tmp_path / "a").is_dir()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EROFS, errno.EACCES])
def test_a_data_folder_opens_where_the_folder_above_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _fails_to_sync(monkeypatch, tmp_path, number)
    lock_folder(tmp_path / "data").release()
    lock_folder(tmp_path / "data").release()


@pytest.mark.parametrize(("number", "told"), [(errno.EIO, StoreReadOnlyError), (errno.ENOSPC, StoreFullError)])
def test_a_disk_that_fails_to_sync_the_folder_above_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: type[StoreError]
) -> None:
    _fails_to_sync(monkeypatch, tmp_path, number)
    with pytest.raises(told):
        lock_folder(tmp_path / "data")


def _fails_to_sync(patch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    fsync = os.fsync

    def fails(descriptor: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")) == folder:
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    patch.setattr(os, "fsync", fails)


def test_the_first_attachment_of_a_session_is_on_disk_with_its_folders(tmp_path: Path, synced: list[Path]) -> None:
    folder = tmp_path / "work" / "s" / "attachments"
    AttachmentFiles(folder).keep("digest", b"content")
    assert {tmp_path, tmp_path / "work", tmp_path / "work" / "s", folder} <= set(synced)


def test_a_new_data_folder_is_there_after_a_power_cut(disk: PoweredDisk) -> None:
    vfs = PowerVFS(disk)
    SqliteStore.open(disk.path, vfs=vfs.name).abandon()
    for seed in range(20):
        found = disk.tree.after_cut(random.Random(seed))
        assert found is not None
        assert found["whisperer.db"]


def test_a_database_that_keeps_its_journal_is_refused_with_what_to_do() -> None:
    with (
        closing(apsw.Connection(":memory:")) as connection,
        pytest.raises(StoreError, match=r"cannot have a write-ahead log .*stays 'memory'.* choose another data folder"),
    ):
        _log_writes_ahead(connection, Path("whisperer.db"))


@pytest.mark.parametrize("kind", ["database.write", "database.sync", "journal.sync"])
def test_a_disk_that_is_full_when_the_log_is_begun_is_told_and_harms_nothing(disk: PoweredDisk, kind: str) -> None:
    disk.plans = (Interruption(kind=kind, number=2, error=errno.ENOSPC),)
    vfs = PowerVFS(disk)
    with pytest.raises(StoreFullError):
        SqliteStore.open(disk.path, vfs=vfs.name)
    disk.plans = ()
    store = SqliteStore.open(disk.path, vfs=vfs.name)
    assert list(store._writing.execute("PRAGMA journal_mode")) == [("wal",)]
    store.abandon()


def test_a_note_that_cannot_be_synced_at_the_end_lets_go_of_the_folder_all_the_same(disk: PoweredDisk) -> None:
    vfs = PowerVFS(disk)
    store = SqliteStore.open(disk.path, vfs=vfs.name)
    disk.plans = (Interruption(kind="note.sync", number=disk.counts["note.sync"] + 1, error=errno.EIO),)
    asyncio.run(store.close())
    assert disk.failed_at == ["note.sync"]
    SqliteStore.open(disk.path, vfs=vfs.name).abandon()


def test_a_note_that_cannot_be_written_any_more_does_not_come_back(disk: PoweredDisk) -> None:
    make_durable(disk.path)
    noted = Acknowledged(disk.path)
    disk.folder.sync()
    disk.plans = (Interruption(kind="note.write", number=disk.counts["note.write"] + 1, error=errno.EIO),)
    noted.forget(["s"])()
    noted.close()
    assert all(ACKNOWLEDGED_NAME not in (disk.tree.after_cut(random.Random(seed)) or {}) for seed in range(20))
