"""Opening a database that cannot be opened: a clear error, and nothing is harmed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from ai_whisperer.errors import (
    StoreCorruptError,
    StoreFailedError,
    StoreFullError,
    StoreInUseError,
    StoreReadOnlyError,
    StoreVersionError,
)
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.opening import latest_version
from ai_whisperer.testing.faulty_vfs import FaultyVFS
from tests.contract.records import task, unit_with


def open_and_write(folder: Path, task_id: str = "t1") -> None:
    async def main() -> None:
        store = SqliteStore.open(folder)
        await store.submit(unit_with(task(task_id), note="x"))
        await store.close()

    asyncio.run(main())


def contents(folder: Path) -> bytes:
    return (folder / DATABASE_NAME).read_bytes()


def test_what_was_committed_is_there_after_reopening(tmp_path: Path) -> None:
    open_and_write(tmp_path, "t1")
    open_and_write(tmp_path, "t2")

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        assert [each.id for each in (await store.load("s")).tasks] == ["t1", "t2"]
        assert [note.seq for note in await store.notifications("s", after=0, limit=9)] == [1, 2]
        await store.close()

    asyncio.run(main())


def test_commits_are_synced_in_full(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        assert store._writing.pragma("synchronous") == 2
        assert store._writing.pragma("journal_mode") == "wal"
        await store.close()

    asyncio.run(main())


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    open_and_write(tmp_path)
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.pragma("user_version", latest_version() + 1)
    connection.close()
    before = contents(tmp_path)
    with pytest.raises(StoreVersionError, match="Upgrade AI Whisperer"):
        SqliteStore.open(tmp_path)
    assert contents(tmp_path) == before


def test_a_log_that_was_left_beside_a_newer_database_is_left_as_it_is_too(tmp_path: Path) -> None:
    open_and_write(tmp_path)
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.pragma("journal_mode", "wal")
    connection.pragma("user_version", latest_version() + 1)
    connection.close()
    files = {file.name: file.read_bytes() for file in tmp_path.glob("*.db*") if not file.name.endswith("-shm")}
    assert len(files[f"{DATABASE_NAME}-wal"]) > 0
    with pytest.raises(StoreVersionError):
        SqliteStore.open(tmp_path)
    assert files == {file.name: file.read_bytes() for file in tmp_path.glob("*.db*") if not file.name.endswith("-shm")}


@pytest.mark.parametrize("garbage", [b"not a database at all, " * 300, b"\x00" * 9000, b"short"])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(garbage)
    with pytest.raises(StoreCorruptError, match="left as it is"):
        SqliteStore.open(tmp_path)
    assert contents(tmp_path) == garbage


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = contents(tmp_path)
    with pytest.raises(StoreCorruptError, match="another program"):
        SqliteStore.open(tmp_path)
    assert contents(tmp_path) == before


def test_a_database_whose_maker_died_before_filling_it_is_filled(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.pragma("journal_mode", "wal")
    connection.close()
    open_and_write(tmp_path)


def test_a_damaged_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    for number in range(20):
        open_and_write(tmp_path, f"t{number}")
    damaged = bytearray(contents(tmp_path))
    for page in range(2, len(damaged) // 4096):
        damaged[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    (tmp_path / DATABASE_NAME).write_bytes(damaged)
    with pytest.raises(StoreCorruptError, match="damaged"):
        SqliteStore.open(tmp_path)
    assert contents(tmp_path) == bytes(damaged)


def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreReadOnlyError, match=r"cannot be written.*Choose another"):
        SqliteStore.open(tmp_path / "file" / "data")
    with pytest.raises(StoreReadOnlyError, match="cannot be written"):
        SqliteStore.open("/proc/whisperer")


def test_a_read_only_file_system_is_refused(tmp_path: Path) -> None:
    vfs = FaultyVFS()
    vfs.fail_with = apsw.ReadOnlyError
    with pytest.raises(StoreReadOnlyError, match="cannot be written"):
        SqliteStore.open(tmp_path, vfs=vfs.name)
    open_and_write(tmp_path)


def test_a_full_disk_at_opening_is_told_and_the_folder_can_be_used_afterwards(tmp_path: Path) -> None:
    vfs = FaultyVFS()
    vfs.fail_with = apsw.FullError
    with pytest.raises(StoreFullError, match="Free some space"):
        SqliteStore.open(tmp_path, vfs=vfs.name)
    open_and_write(tmp_path)


@pytest.mark.parametrize(("fault", "error"), [(apsw.FullError, StoreFullError), (apsw.IOError, StoreFailedError)])
def test_a_commit_that_fails_stops_the_store_and_loses_nothing_accepted(
    tmp_path: Path, fault: type[apsw.Error], error: type[Exception]
) -> None:
    vfs = FaultyVFS()

    async def main() -> None:
        store = SqliteStore.open(tmp_path, vfs=vfs.name)
        failures: list[BaseException] = []
        store.listen("s", lambda *_: None, failures.append)
        await store.submit(unit_with(task("accepted"), note="x"))
        vfs.fail_with = fault
        with pytest.raises(error):
            await store.submit(unit_with(task("refused"), note="y"))
        vfs.fail_with = None
        with pytest.raises(error):
            await store.submit(unit_with(task("after"), note="z"))
        assert len(failures) == 1
        await store.close()
        again = SqliteStore.open(tmp_path)
        assert [each.id for each in (await again.load("s")).tasks] == ["accepted"]
        await again.close()

    asyncio.run(main())


def test_a_database_that_a_live_process_has_open_is_refused_with_its_id(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from ai_whisperer.store.sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = SqliteStore.open(sys.argv[1])\n"
        "    print('open', flush=True)\n"
        "    sys.stdin.read()\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreInUseError, match=f"process with the id {holder.pid}"):
            SqliteStore.open(tmp_path)
        holder.kill()
    open_and_write(tmp_path)


def test_a_second_store_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        with pytest.raises(StoreInUseError):
            SqliteStore.open(tmp_path)
        await store.close()

    asyncio.run(main())


def test_only_the_owner_can_read_what_is_kept(tmp_path: Path) -> None:
    async def modes_while_open() -> set[int]:
        store = SqliteStore.open(tmp_path / "data")
        await store.submit(unit_with(task("t1"), note="x"))
        files = [tmp_path / "data", *(tmp_path / "data").iterdir()]
        modes = {file.stat().st_mode & 0o077 for file in files}
        assert len(files) >= 4
        await store.close()
        return modes

    assert asyncio.run(modes_while_open()) == {0}
