"""What was acknowledged and is missing is told when the store is opened, and nothing else ever is."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from ai_whisperer import accept_loss
from ai_whisperer.errors import StoreCorruptError, StoreFailedError, StoreInUseError, StoreLostError
from ai_whisperer.store.base import Unit
from ai_whisperer.store.folder_lock import LOCK_NAME, FolderLock
from ai_whisperer.store.sqlite import SqliteStore, acknowledged
from ai_whisperer.store.sqlite.acknowledged import ACKNOWLEDGED_NAME, Acknowledged, read_claim
from ai_whisperer.store.sqlite.files import DATABASE_NAME, wal_of
from ai_whisperer.store.sqlite.opening import database_version
from tests.contract.records import task, tell, unit_with

WRITER = """
import asyncio, os, sys
from ai_whisperer.store.sqlite import acknowledged
from ai_whisperer.store.sqlite import SqliteStore
from tests.contract.records import task, unit_with

async def main():
    acknowledged.PAUSE_SECONDS = 0
    store = SqliteStore.open(sys.argv[1])
    for number in range(int(sys.argv[2])):
        await store.submit(unit_with(task(f"{sys.argv[3]}{number}"), note="x"))
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def write_and_die(folder: Path, count: int = 10, *, prefix: str = "t") -> None:
    """Another process writes so many units, each acknowledged, and is killed."""
    died = subprocess.run([sys.executable, "-c", WRITER, str(folder), str(count), prefix], check=False)
    assert died.returncode == -9


def open_and_write(folder: Path, *names: str) -> None:
    async def main() -> None:
        store = SqliteStore.open(folder)
        for name in names:
            await store.submit(unit_with(task(name), note="x"))
        await store.close()

    asyncio.run(main())


def tasks_in(folder: Path) -> list[str]:
    async def main() -> list[str]:
        store = SqliteStore.open(folder)
        found = [each.id for each in (await store.load("s")).tasks]
        await store.close()
        return found

    return asyncio.run(main())


def files_of(folder: Path) -> dict[str, bytes]:
    """What is in the files; those that anybody makes who looks are left out."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", LOCK_NAME))}
    return {name: content for name, content in found.items() if content}


def delete_log(folder: Path) -> None:
    wal_of(folder / DATABASE_NAME).unlink()


def damage_log(folder: Path) -> None:
    path = wal_of(folder / DATABASE_NAME)
    content = bytearray(path.read_bytes())
    content[len(content) * 3 // 4] ^= 0xFF
    path.write_bytes(content)


def cut_log(folder: Path) -> None:
    path = wal_of(folder / DATABASE_NAME)
    os.truncate(path, path.stat().st_size * 3 // 4)


def empty_database(folder: Path) -> None:
    os.truncate(folder / DATABASE_NAME, 0)


def delete_database(folder: Path) -> None:
    (folder / DATABASE_NAME).unlink()


def delete_database_and_log(folder: Path) -> None:
    delete_database(folder)
    delete_log(folder)


@pytest.mark.parametrize(
    "harm", [delete_log, damage_log, cut_log, empty_database, delete_database, delete_database_and_log]
)
def test_a_loss_is_told_and_left_as_it_is_until_it_is_accepted(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    write_and_die(tmp_path)
    harm(tmp_path)
    before = files_of(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreLostError, match=r"notification 10 of session 's' at .*--accept-loss"):
            SqliteStore.open(tmp_path)
    assert files_of(tmp_path) == before
    assert accept_loss(tmp_path) is not None
    left = tasks_in(tmp_path)
    assert left == [f"t{number}" for number in range(len(left))]
    assert len(left) < 10
    open_and_write(tmp_path, "after")
    assert tasks_in(tmp_path) == [*left, "after"]


def test_a_database_restored_from_an_older_backup_is_told(tmp_path: Path) -> None:
    open_and_write(tmp_path, "one", "two")
    shutil.copy(tmp_path / DATABASE_NAME, tmp_path / "backup")
    open_and_write(tmp_path, "three")
    shutil.copy(tmp_path / "backup", tmp_path / DATABASE_NAME)
    with pytest.raises(StoreLostError, match=r"notification 3 of session 's'.* ends at 2"):
        SqliteStore.open(tmp_path)


def test_nothing_is_given_up_for_a_file_that_is_no_database(tmp_path: Path) -> None:
    open_and_write(tmp_path, "t0")
    backup = (tmp_path / DATABASE_NAME).read_bytes()
    open_and_write(tmp_path, "t1")
    (tmp_path / DATABASE_NAME).write_bytes(b"nonsense" * 1000)
    with pytest.raises(StoreCorruptError, match="nothing was given up"):
        accept_loss(tmp_path)
    (tmp_path / DATABASE_NAME).write_bytes(backup)
    with pytest.raises(StoreLostError):
        tasks_in(tmp_path)
    accept_loss(tmp_path)
    assert tasks_in(tmp_path) == ["t0"]


def test_a_database_with_another_history_is_told(tmp_path: Path) -> None:
    open_and_write(tmp_path / "one", "one", "two")
    open_and_write(tmp_path / "other", "1", "2", "3")
    connection = apsw.Connection(str(tmp_path / "other" / DATABASE_NAME))
    connection.execute("UPDATE notification SET at=at+1")
    connection.close()
    shutil.copy(tmp_path / "other" / DATABASE_NAME, tmp_path / "one" / DATABASE_NAME)
    with pytest.raises(StoreLostError, match="something else is there"):
        SqliteStore.open(tmp_path / "one")


@pytest.mark.parametrize("trace", ["logs/default/ann.log", "work/default/ann/report.txt"])
def test_an_empty_folder_in_which_agents_have_worked_is_told(tmp_path: Path, trace: str) -> None:
    (tmp_path / trace).parent.mkdir(parents=True)
    (tmp_path / trace).write_text("x", encoding="utf-8")
    with pytest.raises(StoreLostError, match="agents have worked here"):
        SqliteStore.open(tmp_path)
    accept_loss(tmp_path)
    assert tasks_in(tmp_path) == []


def test_a_write_ahead_log_without_its_database_is_told(tmp_path: Path) -> None:
    wal_of(tmp_path / DATABASE_NAME).write_bytes(b"x" * 100)
    with pytest.raises(StoreLostError, match="write-ahead log"):
        SqliteStore.open(tmp_path)


def test_what_a_first_start_that_failed_has_left_is_no_loss(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text("{}\n", encoding="utf-8")
    (tmp_path / "work").mkdir()
    (tmp_path / "token").write_text("chosen beforehand", encoding="utf-8")
    assert tasks_in(tmp_path) == []


def test_a_process_that_was_killed_while_it_made_the_database_has_lost_nothing(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.pragma("journal_mode", "wal")
    connection.pragma("cache_size", 1)
    connection.execute("BEGIN; CREATE TABLE half (x)")
    connection.execute("INSERT INTO half VALUES (zeroblob(1000000))")  # more than is kept in memory: it is in the log
    killed = tmp_path / "killed"
    killed.mkdir()
    for path in (tmp_path / DATABASE_NAME, wal_of(tmp_path / DATABASE_NAME)):
        shutil.copy(path, killed)
    connection.close()
    assert wal_of(killed / DATABASE_NAME).stat().st_size > 0
    assert tasks_in(killed) == []


def test_a_process_that_was_killed_has_lost_nothing(tmp_path: Path) -> None:
    for life in range(3):
        write_and_die(tmp_path, prefix=f"{life}-")
    assert len(tasks_in(tmp_path)) == 30


def test_a_database_from_before_there_were_claims_is_taken_as_it_is(tmp_path: Path) -> None:
    open_and_write(tmp_path, "one")
    (tmp_path / ACKNOWLEDGED_NAME).unlink()
    assert tasks_in(tmp_path) == ["one"]
    assert read_claim(tmp_path) is not None


def test_a_claim_that_is_behind_is_no_loss(tmp_path: Path) -> None:
    """As after a power cut: the database is synced with each commit, the claim is not."""
    open_and_write(tmp_path, "one")
    behind = (tmp_path / ACKNOWLEDGED_NAME).read_bytes()
    open_and_write(tmp_path, "two", "three")
    (tmp_path / ACKNOWLEDGED_NAME).write_bytes(behind)
    assert tasks_in(tmp_path) == ["one", "two", "three"]


@pytest.mark.parametrize("torn", range(0, 1_024, 64))
def test_a_claim_that_was_torn_is_no_loss_and_leaves_the_one_before(
    tmp_path: Path, torn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledged, "PAUSE_SECONDS", 0)
    open_and_write(tmp_path, "one", "two", "three")
    content = bytearray((tmp_path / ACKNOWLEDGED_NAME).read_bytes())
    content[torn : torn + 32] = b"\xff" * 32
    (tmp_path / ACKNOWLEDGED_NAME).write_bytes(content)
    claim = read_claim(tmp_path)
    assert claim is not None
    assert claim.seq in (2, 3)
    assert tasks_in(tmp_path) == ["one", "two", "three"]


def test_every_state_of_the_disk_after_a_power_cut_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each place of the file any claim may be on disk that was written since the last sync.

    Sessions are deleted and made anew meanwhile, which takes away what older claims are about.
    """
    data, path = tmp_path / "data", tmp_path / "data" / ACKNOWLEDGED_NAME
    places: tuple[list[bytes], list[bytes]] = ([b""], [b""])
    pwrite, fsync = os.pwrite, os.fsync

    def written(file: int, content: bytes, offset: int) -> int:
        if len(content) == 512:
            places[offset // 512].append(content)
        return pwrite(file, content, offset)

    def synced(file: int) -> None:
        fsync(file)
        for place in places:
            del place[:-1]

    async def main() -> int:
        checked = 0
        monkeypatch.setattr(acknowledged, "PAUSE_SECONDS", 0)
        monkeypatch.setattr(os, "pwrite", written)
        monkeypatch.setattr(os, "fsync", synced)
        store = SqliteStore.open(data)
        for number in range(17):
            session = f"s{number % 3}"
            unit = Unit()
            tell(unit, session, "x", params={})
            await store.submit(unit)
            if number % 7 == 6:
                await store.delete_session(session)
            database, log = (file.read_bytes() for file in (data / DATABASE_NAME, wal_of(data / DATABASE_NAME)))
            for first, second in itertools.product(*map(tuple, places)):
                cut = tmp_path / f"cut-{checked}"
                cut.mkdir()
                (cut / DATABASE_NAME).write_bytes(database)
                wal_of(cut / DATABASE_NAME).write_bytes(log)
                (cut / ACKNOWLEDGED_NAME).write_bytes(first + second)
                database_version(cut / DATABASE_NAME)  # raises if it takes this for a loss
                checked += 1
        assert path.exists()
        store.abandon()
        return checked

    assert asyncio.run(main()) > 50


def test_what_is_acknowledged_in_a_pause_is_claimed_after_it(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        for name in ("one", "two", "three"):
            await store.submit(unit_with(task(name), note="x"))
        while (claim := read_claim(tmp_path)) is None or claim.seq < 3:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
        store.abandon()

    asyncio.run(main())


def test_a_session_that_was_deleted_is_no_loss(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        await store.submit(unit_with(task("one"), note="x"))
        await store.delete_session("s")
        store.abandon()
        SqliteStore.open(tmp_path).abandon()

    asyncio.run(main())


def test_a_disk_that_takes_no_claims_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    open_and_write(tmp_path, "one")
    monkeypatch.setattr(os, "pwrite", full)
    claims = Acknowledged(tmp_path)
    claims.forget({"s"})()
    claims.close()
    monkeypatch.undo()
    assert read_claim(tmp_path) is None
    assert tasks_in(tmp_path) == ["one"]


def test_whoever_deletes_the_lock_file_lets_nobody_in(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        (tmp_path / LOCK_NAME).unlink()
        with pytest.raises(StoreInUseError):
            SqliteStore.open(tmp_path)
        assert FolderLock.holder(tmp_path) is not None
        await store.submit(unit_with(task("one"), note="x"))
        assert FolderLock.holder(tmp_path) == str(os.getpid())
        await store.close()
        assert FolderLock.holder(tmp_path) is None

    asyncio.run(main())


def test_where_folders_cannot_be_locked_the_writer_notices_who_came_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderLock, "_lock_folder", lambda _: None)

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        (tmp_path / LOCK_NAME).unlink()
        other = FolderLock(tmp_path)
        with pytest.raises(StoreFailedError, match="lock of the data folder"):
            await store.submit(unit_with(task("one"), note="x"))
        other.release()
        store.abandon()

    asyncio.run(main())


@pytest.mark.parametrize("others", [1, 4])
def test_of_processes_that_race_for_a_folder_one_gets_it(tmp_path: Path, others: int) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ai_whisperer.errors import StoreInUseError\n"
        "from ai_whisperer.store.folder_lock import FolderLock\n"
        "print('up', flush=True)\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    lock = FolderLock(Path(sys.argv[1]))\n"
        "    print('got it', flush=True)\n"
        "except StoreInUseError:\n"
        "    print('refused', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(others + 1)
    ]
    outcomes = []
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "up\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.stdout is not None
        outcomes.append(racer.stdout.readline())
    for racer in racers:
        racer.communicate("end\n")
    assert sorted(outcomes) == ["got it\n", *["refused\n"] * others]


def test_a_database_that_is_deleted_under_the_writer_is_saved_elsewhere(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        await store.submit(unit_with(task("one"), note="x"))
        (tmp_path / DATABASE_NAME).unlink()
        store._writer._look_at = 0.0
        with pytest.raises(StoreFailedError, match=r"was removed or replaced.*put it in place"):
            await store.submit(unit_with(task("two"), note="x"))
        await store.close()

    asyncio.run(main())
    with pytest.raises(StoreLostError):
        SqliteStore.open(tmp_path)
    (tmp_path / "whisperer.rescued.db").rename(tmp_path / DATABASE_NAME)
    assert tasks_in(tmp_path) == ["one"]


def test_a_log_that_is_deleted_under_the_writer_costs_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        await store.submit(unit_with(task("one"), note="x"))
        delete_log(tmp_path)
        store._writer._look_at = 0.0
        with pytest.raises(StoreFailedError, match="Nothing is lost"):
            await store.submit(unit_with(task("two"), note="x"))
        await store.close()

    asyncio.run(main())
    assert tasks_in(tmp_path) == ["one"]
