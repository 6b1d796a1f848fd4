"""Backups and restoring that are cut short by a kill, at every change of the folder, and odd files of agents."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ai_whisperer import backup, export_session, import_into_folder, restore
from ai_whisperer.cli.main import main
from ai_whisperer.errors import ArchiveError, StoreInUseError, StoreLostError, StoreMovedError
from ai_whisperer.store.folder_lock import FolderLock
from ai_whisperer.store.moved import MARK, Moved, mark_moved
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite import backup as backing_up
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from tests.contract.test_moving import listed, live, opened, rows_of

KILLED = 9


def killed_at(number: int, act: Callable[[], object]) -> bool:
    """Do it in another process that dies before it renames something for the so-manieth time; whether it died."""
    child = os.fork()
    if child == 0:
        renames = 0
        rename = Path.rename

        def counted(self: Path, target: Path) -> Path:
            nonlocal renames
            renames += 1
            if renames == number:
                os._exit(KILLED)
            return rename(self, target)

        Path.rename = counted  # type: ignore[method-assign, assignment]
        try:
            act()
        except BaseException:  # noqa: BLE001 - the process ends here, whatever happened
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, KILLED)
    return code == KILLED


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    asyncio.run(live(folder))
    listed(folder)
    return folder


def own_folder(data: Path) -> Path:
    return next((data / "work").rglob("note.txt")).parent


def test_a_restore_into_a_new_folder_that_was_killed_can_be_done_again(lived: Path, tmp_path: Path) -> None:
    backup(lived, tmp_path / "b.zip")
    number = 1
    while True:
        target = tmp_path / f"target{number}"
        if not killed_at(number, partial(restore, tmp_path / "b.zip", target)):
            break
        with pytest.raises(StoreLostError):
            SqliteStore.open(target)
        restore(tmp_path / "b.zip", target)
        assert rows_of(target) == rows_of(lived)
        assert len(list((target / "work").rglob("note.txt"))) == 1
        assert not (target / ".restoring").exists()
        number += 1
    assert number > 2, "the database and the files of agents"


def test_the_command_names_the_folder_that_it_restored_as_it_is(
    lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    backup(lived, tmp_path / "backup.zip")
    assert main(["restore", str(tmp_path / "backup.zip"), "--data", "../there"]) == 0
    told = capsys.readouterr().out
    assert f"into {tmp_path.resolve() / 'there'}." in told
    assert ".." not in told


def test_a_restore_over_another_folder_that_was_killed_loses_neither(lived: Path, tmp_path: Path) -> None:
    backup(lived, tmp_path / "b.zip")
    number = 1
    while True:
        target = tmp_path / f"target{number}"
        asyncio.run(live(target))
        before = rows_of(target)
        if not killed_at(number, partial(restore, tmp_path / "b.zip", target, replace=True)):
            break
        if not (target / DATABASE_NAME).exists():
            with pytest.raises(StoreLostError):
                SqliteStore.open(target)
        restore(tmp_path / "b.zip", target, replace=True)
        aside = [path for path in target.glob("replaced-*") if (path / DATABASE_NAME).exists()]
        assert before in [rows_of(path) for path in aside]
        assert len(list(target.glob("replaced-*/work/**/note.txt"))) >= 1
        assert rows_of(target) == rows_of(lived)
        number += 1
    assert number > 3


def test_a_folder_that_was_copied_to_postgresql_is_marked_until_its_database_is_set_aside(
    lived: Path, tmp_path: Path
) -> None:
    backup(lived, tmp_path / "b.zip")
    number = 1
    while True:
        target = tmp_path / f"target{number}"
        asyncio.run(live(target))
        mark_moved(target, Moved(address="postgresql://h/d", at=1.0))
        if not killed_at(number, partial(restore, tmp_path / "b.zip", target, replace=True)):
            break
        with pytest.raises((StoreMovedError, StoreLostError)):
            SqliteStore.open(target)
        restore(tmp_path / "b.zip", target, replace=True)
        number += 1
    assert number > 4
    for each in tmp_path.glob("target*"):
        SqliteStore.open(each).abandon()
        assert len(list(each.glob(f"replaced-*/{MARK}"))) == 1


def test_a_restored_folder_is_unmarked_before_it_is_synced_and_let_go(
    lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(lived, tmp_path / "b.zip")
    mark_moved(lived, Moved(address="postgresql://h/d", at=1.0))
    seen = []

    def look(folder: Path) -> None:
        seen.append(((folder / MARK).exists(), FolderLock.holder(folder)))

    monkeypatch.setattr(backing_up, "sync_folder", look)
    restore(tmp_path / "b.zip", lived, replace=True)
    assert seen == [(False, str(os.getpid()))]


def test_a_restore_that_was_killed_before_it_changed_anything_lets_nothing_be_replaced_unasked(
    lived: Path, tmp_path: Path
) -> None:
    backup(lived, tmp_path / "b.zip")
    assert killed_at(1, lambda: restore(tmp_path / "b.zip", lived, replace=True))
    assert (lived / ".restoring").exists()
    before = rows_of(lived)
    with pytest.raises(StoreInUseError, match="--replace"):
        restore(tmp_path / "b.zip", lived)
    assert rows_of(lived) == before


def test_a_backup_that_was_killed_leaves_nothing_behind_when_it_is_made_again(lived: Path, tmp_path: Path) -> None:
    assert killed_at(1, lambda: backup(lived, tmp_path / "b.zip"))
    assert not (tmp_path / "b.zip").exists()
    backup(lived, tmp_path / "b.zip")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.zip", "data"]


def test_a_backup_is_made_by_one_process_at_a_time(lived: Path, tmp_path: Path) -> None:
    def another(_: float) -> None:
        with pytest.raises(ArchiveError, match="Another process"):
            backup(lived, tmp_path / "b.zip")

    backup(lived, tmp_path / "b.zip", on_progress=lambda part: another(part) if part < 1 else None)


def test_files_of_agents_come_back_whatever_they_are_called_and_can_still_be_run(lived: Path, tmp_path: Path) -> None:
    own = own_folder(lived)
    names = [b"back\\slash", b"no\xffutf", b"100%41", b"new\nline", "é☃".encode(), b"..more"]
    for name in names:
        Path(own, os.fsdecode(name)).write_bytes(name)
    (own / "run.sh").write_text("#!/bin/sh\n")
    (own / "run.sh").chmod(0o755)
    (own / "link").symlink_to("/etc/passwd")
    backup(lived, tmp_path / "b.zip")
    restore(tmp_path / "b.zip", tmp_path / "restored")
    export_session(lived, "default", tmp_path / "s.zip")
    import_into_folder(tmp_path / "imported", tmp_path / "s.zip")
    for folder in (tmp_path / "restored", tmp_path / "imported"):
        there = own_folder(folder)
        assert {name: Path(there, os.fsdecode(name)).read_bytes() for name in names} == {name: name for name in names}
        assert stat.S_IMODE((there / "run.sh").stat().st_mode) == 0o700
        assert stat.S_IMODE((there / "note.txt").stat().st_mode) == 0o600
        assert not (there / "link").is_symlink()


def test_a_backup_among_the_files_that_it_has_does_not_contain_itself(lived: Path, tmp_path: Path) -> None:
    file = own_folder(lived) / "b.zip"
    backup(lived, file)
    restore(file, tmp_path / "restored")
    assert sorted(path.name for path in own_folder(tmp_path / "restored").iterdir()) == ["note.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_named(lived: Path, tmp_path: Path) -> None:
    (own_folder(lived) / "note.txt").chmod(0)
    with pytest.raises(ArchiveError, match=r"note.txt' cannot be read"):
        backup(lived, tmp_path / "b.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_export_sees_all_of_one_moment_while_the_session_is_pruned(lived: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(lived) as manager:
            loop, begun, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
            first = True

            def wait(_: float) -> None:
                nonlocal first
                if first:
                    first = False
                    loop.call_soon_threadsafe(begun.set)
                    asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()

            exporting = asyncio.create_task(
                asyncio.to_thread(lambda: export_session(lived, "default", tmp_path / "s.zip", on_progress=wait))
            )
            await begun.wait()
            assert (await manager.prune(older_than=0)).erased.tasks > 0
            await manager.run_task("ann", "meanwhile")
            go_on.set()
            await exporting

    asyncio.run(main())
    import_into_folder(tmp_path / "target", tmp_path / "s.zip")

    async def look() -> None:
        async with opened(tmp_path / "target") as manager:
            assert (await manager.get_task("t1")).prompt == "Begin: é ☃"
            assert (await manager.notifications(after=0))[0].seq == 1

    asyncio.run(look())
