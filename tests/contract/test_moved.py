"""A data folder says that its sessions were copied to PostgreSQL, whatever happens to it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ai_whisperer import use_folder
from ai_whisperer.errors import StoreError, StoreFullError, StoreMovedError, StoreReadOnlyError
from ai_whisperer.store.moved import MARK, Moved, check_not_moved, find_moved, mark_moved
from ai_whisperer.store.sqlite import SqliteStore

MOVED = Moved(address="postgresql://h/d", at=1.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    SqliteStore.open(tmp_path / "data").abandon()
    return tmp_path / "data"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The names of what is synced, and whether the folder was marked then."""
    found: list[tuple[str, bool]] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        found.append((path.name, (path / MARK).exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return found


def test_the_mark_is_on_disk_before_it_has_its_name_and_so_is_its_name(
    data: Path, synced: list[tuple[str, bool]]
) -> None:
    mark_moved(data, MOVED)
    assert synced == [(f"{MARK}.new", False), ("data", True)]
    assert find_moved(data) == MOVED


def test_a_folder_that_is_used_again_is_so_after_a_power_cut(data: Path, synced: list[tuple[str, bool]]) -> None:
    mark_moved(data, MOVED)
    synced.clear()
    assert use_folder(data)
    assert synced[-1] == ("data", False)


def test_a_folder_without_a_database_is_not_made_to_be_used(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no database in"):
        use_folder(tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_mark_is_told_without_a_date_and_can_be_given_up(data: Path) -> None:
    (data / MARK).write_bytes(b"{")
    with pytest.raises(StoreMovedError, match="is damaged and cannot be read") as refused:
        SqliteStore.open(data)
    assert "1970" not in refused.value.message
    with pytest.raises(StoreMovedError):
        check_not_moved(data, except_to="postgresql://h/d")
    assert use_folder(data)
    SqliteStore.open(data).abandon()


def test_a_mark_that_cannot_be_read_is_not_taken_for_a_move(data: Path) -> None:
    (data / MARK).mkdir()
    with pytest.raises(StoreError, match="cannot be read") as refused:
        SqliteStore.open(data)
    assert not isinstance(refused.value, StoreMovedError)


@pytest.mark.parametrize(("number", "told"), [(errno.ENOSPC, StoreFullError), (errno.EIO, StoreReadOnlyError)])
def test_a_disk_that_does_not_take_the_mark_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: type[StoreError]
) -> None:
    def fails(_: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(told):
            mark_moved(data, MOVED)
    assert not list(data.glob(f"{MARK}*"))
    check_not_moved(data)
