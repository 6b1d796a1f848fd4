"""Backups and exported sessions: whole, of one moment, and refused where they are not."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import zipfile
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from ai_whisperer import (
    AsyncAgentSessionManager,
    accept_loss,
    backup,
    export_session,
    import_into_folder,
    restore,
    use_folder,
)
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import (
    ArchiveError,
    DuplicateIdError,
    StoreError,
    StoreInUseError,
    UnknownSessionError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.store.archive import MANIFEST
from ai_whisperer.store.base import Unit
from ai_whisperer.store.operations import INSERT_SESSION
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.tables import OF_A_SESSION
from tests.contract.records import tell
from tests.simulation.stage import call, round_of


class DiedError(Exception):
    """The process is gone."""


def say(request: ModelRequest) -> Answer | str:
    return "done" if round_of(request) else call("write_file", path="note.txt", content="kept")


def opened(folder: Path) -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(folder, model_factory=lambda _: FunctionModel(say), templates=())


async def live(folder: Path) -> None:
    """Leave something of most kinds behind."""
    async with opened(folder) as manager:
        await manager.create_agent("ann", {"tools": ["write_file"]})
        await manager.create_agent("ben", auto_start=False)
        await manager.run_task("ann", "Begin: é ☃", task_id="t1")
        await manager.send_mail("ann", "hello", "you")
        await manager.broadcast_event("data_ready", {"some": [1, None]}, event_id="e1")
        room = await manager.create_room(["ann", "ben"], room_id="lobby", title="Team")
        await manager.post_message(room, "@ann hello")
        await manager.create_schedule("ann", interval_seconds=1e6, prompt="later", schedule_id="s1")
        await manager.send_task("ben", "waits", task_id="open")
        await manager.at_rest()


def rows_of(folder: Path, session_id: str = "default") -> dict[str, list[tuple[object, ...]]]:
    """What the database has of the session; notifications as they are read."""
    found: dict[str, list[tuple[object, ...]]] = {}
    connection = apsw.Connection(str(folder / DATABASE_NAME))
    for table in OF_A_SESSION:
        if table.name != "notification":
            columns = ", ".join(column.name for column in table.columns if column.name != "session_id")
            sql = f"SELECT {columns} FROM {table.name} WHERE session_id=? ORDER BY {', '.join(table.key)}"  # noqa: S608
            found[table.name] = list(connection.execute(sql, (session_id,)))
    connection.close()
    return found


async def notes_of(folder: Path, session_id: str = "default") -> list[object]:
    store = SqliteStore.open(folder)
    notes = await store.notifications(session_id, after=0, limit=10_000)
    await store.close()
    return [(note.seq, note.name, note.cause, note.at, note.params) for note in notes]


def listed(folder: Path) -> None:
    """Let the session be one that a server knows."""

    async def put() -> None:
        from ai_whisperer.domain.sessions import SessionRecord

        store = SqliteStore.open(folder)
        unit = Unit()
        unit.insert_session(SessionRecord(id="default", title="Mine", owner="local", created_at=5.0))
        await store.submit(unit)
        await store.close()

    asyncio.run(put())


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    asyncio.run(live(folder))
    listed(folder)
    return folder


def test_a_restored_backup_has_all_that_there_was_and_the_session_continues(lived: Path, tmp_path: Path) -> None:
    parts: list[float] = []
    report = backup(lived, tmp_path / "b.zip", on_progress=parts.append)
    assert (report.sessions, parts[-1]) == (1, 1.0)
    assert parts == sorted(parts)
    restored = tmp_path / "restored"
    restore(tmp_path / "b.zip", restored)
    assert rows_of(restored) == rows_of(lived)
    assert asyncio.run(notes_of(restored)) == asyncio.run(notes_of(lived))
    assert [path.read_text() for path in (restored / "work").rglob("note.txt")] == ["kept"]

    async def go_on() -> None:
        async with opened(restored) as manager:
            await manager.start_agent("ben")
            assert (await manager.wait_task("open")).state == "completed"

    asyncio.run(go_on())


def test_a_backup_is_of_one_moment_while_a_server_writes_prunes_and_deletes(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    async def main() -> None:
        store = SqliteStore.open(folder)
        for number in range(400):
            unit = Unit()
            tell(unit, "s", "told", params={"text": f"{number:05}" * 400})
            tell(unit, "other", "told", params={"text": "x" * 2000})
            await store.submit(unit)
        loop = asyncio.get_running_loop()
        moving = asyncio.Event()
        making = loop.run_in_executor(
            None,
            lambda: backup(folder, tmp_path / "b.zip", on_progress=lambda _: loop.call_soon_threadsafe(moving.set)),
        )
        await moving.wait()
        deleting = asyncio.ensure_future(store.delete_session("other"))
        count = 400
        while not making.done():
            unit = Unit()
            tell(unit, "s", "told", params={"text": "later" * 400})
            await store.submit(unit)
            count += 1
        await making
        await deleting
        assert len(await store.notifications("s", after=0, limit=100_000)) == count
        await store.close()

    asyncio.run(main())
    restore(tmp_path / "b.zip", tmp_path / "restored")

    async def look() -> None:
        store = SqliteStore.open(tmp_path / "restored")
        seqs = [note.seq for note in await store.notifications("s", after=0, limit=100_000)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= 400
        assert len(await store.notifications("other", after=0, limit=100_000)) == 400
        await store.close()

    asyncio.run(look())


def test_a_folder_in_use_is_not_restored_over(lived: Path, tmp_path: Path) -> None:
    backup(lived, tmp_path / "b.zip")
    target = tmp_path / "target"

    async def main() -> None:
        async with opened(target):
            for replace in (False, True):
                with pytest.raises(StoreInUseError, match="has the data folder"):
                    await asyncio.to_thread(restore, tmp_path / "b.zip", target, replace=replace)

    asyncio.run(main())


def test_a_folder_that_has_a_database_is_left_alone_unless_it_is_set_aside(lived: Path, tmp_path: Path) -> None:
    backup(lived, tmp_path / "b.zip")
    before = rows_of(lived)
    with pytest.raises(StoreInUseError, match="--replace"):
        restore(tmp_path / "b.zip", lived)
    assert rows_of(lived) == before
    report = restore(tmp_path / "b.zip", lived, replace=True)
    assert report.set_aside is not None
    assert (Path(report.set_aside) / DATABASE_NAME).stat().st_size > 0
    assert rows_of(lived) == before


def damaged(file: Path, how: str) -> Path:
    """The archive, spoilt in one way."""
    spoilt = file.with_name(f"{how}.zip")
    content = file.read_bytes()
    match how:
        case "half":
            spoilt.write_bytes(content[: len(content) // 2])
        case "empty":
            spoilt.write_bytes(b"")
        case "text":
            spoilt.write_text("hello")
        case "flipped":
            with zipfile.ZipFile(file) as archive:
                largest = max(archive.infolist(), key=lambda each: each.compress_size)
            middle = largest.header_offset + 100 + largest.compress_size // 2
            spoilt.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
        case _:
            with zipfile.ZipFile(file) as old, zipfile.ZipFile(spoilt, "w") as new:
                for name in old.namelist():
                    if name == MANIFEST:
                        manifest = json.loads(old.read(name))
                        if how == "newer":
                            manifest |= {"schema": 999, "made_by": "99.0"}
                        if how == "format":
                            manifest |= {"format": 2}
                        new.writestr(name, json.dumps(manifest))
                    else:
                        new.writestr(name, old.read(name))
                if how == "outside":
                    new.writestr("../evil", b"x")
    return spoilt


@pytest.mark.parametrize("how", ["half", "empty", "text", "flipped", "newer", "format", "outside"])
def test_a_backup_that_cannot_be_used_is_refused_and_nothing_changed(lived: Path, tmp_path: Path, how: str) -> None:
    backup(lived, tmp_path / "b.zip")
    target = tmp_path / "target"
    with pytest.raises(ArchiveError, match=r"[Nn]othing was changed"):
        restore(damaged(tmp_path / "b.zip", how), target)
    assert not target.exists() or not (target / DATABASE_NAME).exists()


@pytest.mark.parametrize("how", ["half", "empty", "text", "flipped", "newer", "format", "outside"])
def test_an_export_that_cannot_be_used_is_refused_and_nothing_is_left_of_it(
    lived: Path, tmp_path: Path, how: str
) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    with pytest.raises(ArchiveError, match=r"[Nn]othing was changed"):
        import_into_folder(tmp_path / "target", damaged(tmp_path / "s.zip", how))


def test_a_file_that_is_there_is_not_written_over(lived: Path, tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_text("mine")
    with pytest.raises(ArchiveError, match="there already"):
        backup(lived, tmp_path / "b.zip")
    with pytest.raises(ArchiveError, match="there already"):
        export_session(lived, "default", tmp_path / "b.zip")
    assert (tmp_path / "b.zip").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["data", "b.zip"] or len(list(tmp_path.iterdir())) == 2


def test_a_folder_without_a_database_has_no_backup_and_none_is_made_in_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no database"):
        backup(tmp_path, tmp_path / "b.zip")
    assert list(tmp_path.iterdir()) == []


def test_an_exported_session_comes_back_as_it_was_under_its_id_and_another(lived: Path, tmp_path: Path) -> None:
    report = export_session(lived, "default", tmp_path / "s.zip")
    assert report.rows["task"] >= 3
    target = tmp_path / "target"
    import_into_folder(target, tmp_path / "s.zip")
    import_into_folder(target, tmp_path / "s.zip", session_id="twin")
    for name in ("default", "twin"):
        assert rows_of(target, name) == rows_of(lived)
        assert asyncio.run(notes_of(target, name)) == asyncio.run(notes_of(lived))
    assert len(list((target / "work").rglob("note.txt"))) == 2

    async def go_on() -> None:
        async with opened(target) as manager:
            last = manager.last_seq
            await manager.start_agent("ben")
            assert (await manager.wait_task("open")).state == "completed"
            assert (await manager.send_task("ann", "Begin: é ☃", task_id="t1")).state == "completed"
            assert manager.last_seq > last

    asyncio.run(go_on())


def test_tasks_of_an_imported_session_are_listed_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    folder, target = tmp_path / "data", tmp_path / "target"

    async def listed_in(data: Path) -> list[str]:
        async with opened(data) as manager:
            return [task.id for task in await manager.list_tasks()]

    async def send() -> None:
        async with opened(folder) as manager:
            await manager.create_agent("ben", auto_start=False)
            for name in ("z", "m", "a", "k"):
                await manager.send_task("ben", "waits", task_id=name)

    asyncio.run(send())
    listed(folder)
    export_session(folder, "default", tmp_path / "s.zip")
    import_into_folder(target, tmp_path / "s.zip")
    assert asyncio.run(listed_in(target)) == asyncio.run(listed_in(folder)) == ["k", "a", "m", "z"]


def test_an_export_is_readable(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    with zipfile.ZipFile(tmp_path / "s.zip") as archive:
        tasks = [json.loads(line) for line in archive.read("rows/task.jsonl").splitlines()]
        notes = [json.loads(line) for line in archive.read("rows/notification.jsonl").splitlines()]
        assert json.loads(archive.read(MANIFEST))["kind"] == "session"
    assert next(task for task in tasks if task["id"] == "t1")["prompt"] == "Begin: é ☃"
    assert notes[0]["name"] == "agent.created"
    assert notes[0]["params"]["agentId"] == "ann"


def test_a_session_in_postgresql_is_exported_as_it_is_from_a_folder(
    lived: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    from ai_whisperer.store.postgresql.copying import copy_folder

    database = str(request.getfixturevalue("database"))
    with closing(apsw.Connection(str(lived / DATABASE_NAME))) as connection:
        connection.execute("""UPDATE session SET needs='["gpu"]'""")
    asyncio.run(copy_folder(lived, database))
    files = [tmp_path / "folder.zip", tmp_path / "database.zip"]
    assert use_folder(lived)
    reports = [export_session(lived, "default", files[0]), export_session(lived, "default", files[1], store=database)]
    assert reports[0].rows == reports[1].rows
    assert reports[0].files == reports[1].files == 1
    contents = []
    for file in files:
        with zipfile.ZipFile(file) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist() if name != MANIFEST})
    assert contents[0] == contents[1]
    assert json.loads(contents[1]["session.json"])["needs"] == ["gpu"]
    with pytest.raises(UnknownSessionError, match="There are: default"):
        export_session(lived, "none", tmp_path / "none.zip", store=database)
    import_into_folder(tmp_path / "new", files[1])
    with closing(apsw.Connection(str(tmp_path / "new" / DATABASE_NAME))) as connection:
        assert list(connection.execute("SELECT needs FROM session")) == [('["gpu"]',)]
    assert rows_of(tmp_path / "new") == rows_of(lived)
    assert asyncio.run(notes_of(tmp_path / "new")) == asyncio.run(notes_of(lived))


def test_a_session_whose_id_is_taken_is_not_imported(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    before = rows_of(lived)
    with pytest.raises(DuplicateIdError, match="--as"):
        import_into_folder(lived, tmp_path / "s.zip")
    assert rows_of(lived) == before


def test_an_unknown_session_is_not_exported(lived: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownSessionError, match="There are: default"):
        export_session(lived, "nobody", tmp_path / "s.zip")
    assert not (tmp_path / "s.zip").exists()


def test_a_session_that_was_not_imported_to_its_end_is_gone_after_a_crash(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    target = tmp_path / "target"

    async def die_in_between() -> None:
        store = SqliteStore.open(target)
        submit, count = store.submit, 0

        def some(unit: Unit) -> asyncio.Future[None]:
            nonlocal count
            count += 1
            if count == 6:
                store.abandon()
                raise DiedError
            return submit(unit)

        store.submit = some  # type: ignore[method-assign]
        with pytest.raises(DiedError):
            await store.import_session(tmp_path / "s.zip", owner="local", data=target)

    asyncio.run(die_in_between())
    copy = tmp_path / "copy"
    shutil.copytree(target, copy)
    import_into_folder(copy, tmp_path / "s.zip")
    assert rows_of(copy) == rows_of(lived)


def test_an_import_with_a_line_that_is_wrong_leaves_nothing(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    bad = tmp_path / "bad.zip"
    with zipfile.ZipFile(tmp_path / "s.zip") as old, zipfile.ZipFile(bad, "w") as new:
        manifest = json.loads(old.read(MANIFEST))
        for name in manifest["members"]:
            content = old.read(name)
            if name == "rows/step.jsonl":
                content += b'{"task_id": "t1", "number": "many"}\n'
                manifest["members"][name] = hashlib.sha256(content).hexdigest()
            new.writestr(name, content)
        new.writestr(MANIFEST, json.dumps(manifest))
    target = tmp_path / "target"
    with pytest.raises(ArchiveError, match=r"rows/step.jsonl, line \d+"):
        import_into_folder(target, bad)
    assert not any(rows_of(target).values())
    import_into_folder(target, tmp_path / "s.zip")
    assert rows_of(target) == rows_of(lived)


def test_files_of_an_import_that_was_cut_short_go_with_it(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    target = tmp_path / "target"

    async def die_at_the_end() -> None:
        store = SqliteStore.open(target)
        submit = store.submit

        def all_but_the_last(unit: Unit) -> asyncio.Future[None]:
            if any(operation is INSERT_SESSION for operation, _ in unit.changes):
                store.abandon()
                raise DiedError
            return submit(unit)

        store.submit = all_but_the_last  # type: ignore[method-assign]
        with pytest.raises(DiedError):
            await store.import_session(tmp_path / "s.zip", owner="local", data=target)
        for undoing in store._undoing:
            undoing.cancel()

    asyncio.run(die_at_the_end())
    assert len(list(target.rglob("note.txt"))) == 1

    async def look() -> None:
        store = SqliteStore.open(target)
        assert not (target / "work" / "default").exists()
        await store.close()

    asyncio.run(look())


def test_an_import_that_is_cancelled_leaves_neither_rows_nor_files(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    target = tmp_path / "target"

    async def main() -> None:
        store = SqliteStore.open(target)
        submit = store.submit

        def cancelled_at_the_end(unit: Unit) -> asyncio.Future[None]:
            if any(operation is INSERT_SESSION for operation, _ in unit.changes):
                importing.cancel()
                return asyncio.get_running_loop().create_future()
            return submit(unit)

        store.submit = cancelled_at_the_end  # type: ignore[method-assign]
        importing = asyncio.ensure_future(store.import_session(tmp_path / "s.zip", owner="local", data=target))
        with pytest.raises(asyncio.CancelledError):
            await importing
        assert store.is_closed_off("default"), "until the rest of it is gone"
        await store.close()

    asyncio.run(main())
    assert not any(rows_of(target).values())
    assert list(target.rglob("note.txt")) == []


def test_what_a_lost_session_has_left_is_set_aside_by_an_import(lived: Path, tmp_path: Path) -> None:
    export_session(lived, "default", tmp_path / "s.zip")
    target = tmp_path / "target"
    left = target / "work" / "default" / "agents" / "ann"
    left.mkdir(parents=True)
    (left / "mine.txt").write_text("mine")
    accept_loss(target)
    import_into_folder(target, tmp_path / "s.zip")
    assert [path.name for path in left.iterdir()] == ["note.txt"]
    assert [path.read_text() for path in target.glob("replaced-*/work/default/agents/ann/mine.txt")] == ["mine"]


@pytest.mark.parametrize(
    ("member", "line"),
    [
        ("task", {"arrival": "soon"}),
        ("task", {"prompt": 5}),
        ("task", {"created_at": "yesterday"}),
        ("task", {"state": "bored"}),
        ("task", {}),
        ("notification", {"seq": "one"}),
        ("notification", {"seq": 0}),
        ("notification", {"params": []}),
        ("notification", {"more": 1}),
        ("agent", {"started": "maybe"}),
        ("agent", {"unheard_of": 1}),
    ],
)
def test_an_import_refuses_what_does_not_fit(lived: Path, tmp_path: Path, member: str, line: dict[str, object]) -> None:
    """A line again, changed in one place; the same line again is there already."""
    export_session(lived, "default", tmp_path / "s.zip")
    name, bad, target = f"rows/{member}.jsonl", tmp_path / "bad.zip", tmp_path / "target"
    with zipfile.ZipFile(tmp_path / "s.zip") as old, zipfile.ZipFile(bad, "w") as new:
        manifest = json.loads(old.read(MANIFEST))
        for each in manifest["members"]:
            content = old.read(each)
            if each == name:
                content += json.dumps({**json.loads(content.splitlines()[0]), **line}).encode() + b"\n"
                manifest["members"][each] = hashlib.sha256(content).hexdigest()
            new.writestr(each, content)
        new.writestr(MANIFEST, json.dumps(manifest))
    with pytest.raises(ArchiveError, match=rf"{name}.*Nothing was changed"):
        import_into_folder(target, bad)
    assert not any(rows_of(target).values())
