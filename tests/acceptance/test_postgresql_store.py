"""Sessions in PostgreSQL, as people use them: in a program, with a server, and with the commands for them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from asyncpg import Connection

from ai_whisperer import AsyncAgentSessionManager, export_session, use_folder
from ai_whisperer.cli.main import main
from ai_whisperer.client import Client
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import StoreError, StoreInUseError, StoreMovedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.store.moved import Moved, mark_moved
from ai_whisperer.store.postgresql import copying
from ai_whisperer.store.postgresql.migrating import READY, latest_version
from ai_whisperer.store.postgresql.store import PostgresqlStore
from ai_whisperer.store.sqlite import SqliteStore
from tests.acceptance.command_stage import run
from tests.postgresql import Server


def answer(_: ModelRequest) -> str:
    return "done"


def opened(data: Path | None, address: str | None = None, session_id: str = "default") -> AsyncAgentSessionManager:
    return AsyncAgentSessionManager(
        data, store=address, session_id=session_id, model_factory=lambda _: FunctionModel(answer), templates=()
    )


async def live(data: Path | None, address: str | None, *, rounds: int = 3) -> None:
    async with opened(data, address) as manager:
        for name in ("ann", "ben"):
            if name not in manager.active_sessions:
                await manager.create_agent(name)
        for number in range(rounds):
            await manager.run_task("ann", f"go {number}", thread_id="talk")
            await manager.send_mail("ben", "hello", "go")
        await manager.broadcast_event("tick", data={"a": 1})
        await manager.at_rest()


def test_a_session_of_a_program_resumes_from_postgresql(database: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        await live(tmp_path, database)
        async with opened(tmp_path, database) as manager:
            assert sorted(manager.active_sessions) == ["ann", "ben"]
            tasks = await manager.list_tasks("ann")
            assert [each.prompt for each in tasks] == ["go 2", "go 1", "go 0"]
            with pytest.raises(StoreInUseError):
                await opened(tmp_path, database).open()
            await manager.prune(older_than="0s")
        assert not (tmp_path / "whisperer.db").exists()

    asyncio.run(scenario())


def test_what_is_pruned_exported_and_deleted_is_so_in_postgresql_too(database: str, tmp_path: Path) -> None:
    folder = tmp_path / "sqlite"

    async def scenario() -> None:
        await live(folder, None)
        store = SqliteStore.open(folder)
        unit = Unit()
        unit.insert_session(SessionRecord(id="default", title="", owner="local", created_at=1.0))
        await store.submit(unit)
        await store.close()
        await asyncio.to_thread(export_session, folder, "default", tmp_path / "one.zip")
        there = await PostgresqlStore.open(database)
        report = await there.import_session(tmp_path / "one.zip", owner="local", data=tmp_path, session_id="copy")
        assert report.rows["agent"] == 2
        await there.close()
        async with opened(tmp_path, database, "copy") as manager:
            assert await manager.run_task("ann", "again") == "done"
            erased = await manager.prune(older_than="0s")
            assert erased.erased.notifications > 0
        there = await PostgresqlStore.open(database)
        assert (await there.database_bytes())[0] > 0
        assert {part.name for part in await there.stored_parts("copy") if part.rows} >= {"tasks", "mail", "agents"}
        await there.delete_session("copy")
        assert await there.unlisted_sessions() == []
        await there.close()

    asyncio.run(scenario())


def test_a_server_keeps_its_sessions_in_postgresql(database: str, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, store=database, port=0, model="scripted")

    async def scenario() -> None:
        for number in range(2):
            async with running(settings, model_factory=lambda _: FunctionModel(answer)) as server:
                async with Client(server.address.url, token=server.address.token) as client:
                    if number == 0:
                        await client.create_agent("ann")
                        task = await client.send_task("ann", "go", task_id="t1")
                        assert (await client.wait_task(task)).state == "completed"
                    known = [each.agent_id for each in await client.list_agents()]
                    assert known == ["ann"]
                assert server.trouble() is None
        with pytest.raises(StoreError, match="No PostgreSQL answers"):
            async with running(Settings(data=tmp_path, store=re.sub(r":\d+/", ":1/", database), port=0)):
                pass

    asyncio.run(scenario())


def test_the_address_is_not_shown_among_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--store", "postgresql://me:hidden-word@host/db", "--json"]) == 0
    assert "hidden-word" not in capsys.readouterr().out


async def told_of(store: Store) -> dict[str, Any]:
    return {
        "tasks": await store.tasks("default", limit=99),
        "mail": await store.mailbox("default", "ben", limit=99),
        "log": await store.notifications("default", after=0, limit=999),
        "events": await store.events("default", limit=9),
        "session": await store.load("default"),
    }


def test_a_data_folder_is_copied_and_goes_on_in_postgresql(
    postgresql_server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PAGE_ROWS", 7)
    copied = copying._Copying.copy
    tables_left = 8

    async def dies(self: Any, table: Any) -> None:
        nonlocal tables_left
        tables_left -= 1
        if tables_left < 0:
            raise ConnectionResetError
        await copied(self, table)

    async def scenario() -> None:
        await live(tmp_path, None, rounds=5)
        store = SqliteStore.open(tmp_path)
        expected = await told_of(store)
        await store.close()
        with monkeypatch.context() as patch:
            patch.setattr(copying._Copying, "copy", dies)
            with pytest.raises(StoreError):
                await copying.copy_folder(tmp_path, database)
        with pytest.raises(StoreInUseError, match="has not ended"):
            await PostgresqlStore.open(database)
        report = await copying.copy_folder(tmp_path, database)
        assert 0 < report.written < sum(report.rows.values()), "what was there already was written again"
        await live(tmp_path / "stranger", None, rounds=1)
        with pytest.raises(StoreInUseError, match="has sessions already"):
            await copying.copy_folder(tmp_path / "stranger", database)
        there = await PostgresqlStore.open(database)
        assert await told_of(there) == expected
        await there.close()
        async with opened(tmp_path / "other", database) as manager:
            await manager.run_task("ann", "more")
            assert [each.prompt for each in await manager.list_tasks("ann")][:2] == ["more", "go 4"]

    asyncio.run(scenario())


def test_a_copy_whose_last_answer_was_lost_is_told_to_be_done_unless_something_has_changed_there(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Connection.execute

    async def loses_the_answer(self: Connection, query: str, *values: object) -> str:
        told = await execute(self, query, *values)
        if values == (READY,):
            self.terminate()
            raise ConnectionResetError
        return str(told)

    async def scenario() -> None:
        await live(tmp_path, None, rounds=2)
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "execute", loses_the_answer)
            with pytest.raises(StoreError):
                await copying.copy_folder(tmp_path, database)
        report = await copying.copy_folder(tmp_path, database)
        assert (report.was_done, report.written) == (True, 0)
        async with opened(tmp_path / "other", database) as manager:
            await manager.run_task("ann", "more")
        with pytest.raises(StoreMovedError, match=r"have changed there since\. Start a server on that .*nothing was"):
            await copying.copy_folder(tmp_path, database)
        there = await PostgresqlStore.open(database)
        assert len(await there.tasks("default", limit=99)) == report.rows["task"] + 1
        await there.close()

    asyncio.run(scenario())


class DiedError(Exception):
    """The process is gone."""


@pytest.mark.parametrize("marking", [mark_moved, None])
def test_a_copy_that_dies_at_the_end_leaves_one_of_both_for_use_at_most_and_can_be_finished(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marking: Callable[[Path, Moved], None] | None
) -> None:
    def dies(folder: Path, moved: Moved) -> None:
        if marking is not None:
            marking(folder, moved)
        raise DiedError

    async def scenario() -> None:
        await live(tmp_path, None, rounds=1)
        with monkeypatch.context() as patch:
            patch.setattr(copying, "mark_moved", dies)
            with pytest.raises(DiedError):
                await copying.copy_folder(tmp_path, database)
        with pytest.raises(StoreInUseError, match="Run `whisperer store copy` again"):
            await PostgresqlStore.open(database)
        if marking is not None:
            with pytest.raises(StoreMovedError):
                SqliteStore.open(tmp_path)
        else:
            await SqliteStore.open(tmp_path).close()
        await copying.copy_folder(tmp_path, database)
        with pytest.raises(StoreMovedError):
            SqliteStore.open(tmp_path)
        await (await PostgresqlStore.open(database)).close()

    asyncio.run(scenario())


def test_a_folder_that_was_copied_is_not_copied_to_another_address(
    postgresql_server: Server, database: str, tmp_path: Path
) -> None:
    async def scenario(other: str) -> None:
        await live(tmp_path, None, rounds=1)
        await copying.copy_folder(tmp_path, database)
        with pytest.raises(StoreMovedError, match="were copied to postgresql://"):
            await copying.copy_folder(tmp_path, other)
        assert use_folder(tmp_path)
        report = await copying.copy_folder(tmp_path, other)
        assert report.written == sum(report.rows.values()), "something was there already"

    with postgresql_server.database() as other:
        asyncio.run(scenario(other))


def test_a_folder_that_was_copied_says_so_until_it_is_to_be_used_again(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, here = tmp_path / "data", ["--data", str(tmp_path / "data")]

    async def copied() -> None:
        await live(data, None, rounds=1)
        await copying.copy_folder(data, database)
        with pytest.raises(StoreMovedError, match=r"were copied to postgresql://.* on \d{4}-.*Give that address with"):
            async with running(Settings(data=data, port=0, model="scripted")):
                pass
        with pytest.raises(StoreMovedError):
            await opened(data).open()
        async with opened(data, database) as manager:
            await manager.run_task("ann", "more")

    asyncio.run(copied())
    for words in (["backup", str(tmp_path / "x.zip")], ["export", "default", str(tmp_path / "s.zip")]):
        assert main([*words, *here]) == 1
        assert "were copied to postgresql://" in capsys.readouterr().err
    assert use_folder(data)
    assert not use_folder(data)

    async def used() -> None:
        async with opened(data) as manager:
            assert [each.prompt for each in await manager.list_tasks("ann")][:1] == ["go 0"]

    asyncio.run(used())
    assert main(["backup", str(tmp_path / "x.zip"), *here]) == 0


def test_a_backup_beside_a_server_on_postgresql_is_refused_though_only_the_server_knows(
    database: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    async def scenario() -> None:
        await live(data, None, rounds=1)
        async with running(Settings(data=data, store=database, port=0, model="scripted")):
            for words in (["backup", tmp_path / "x.zip"], ["export", "default", tmp_path / "s.zip"]):
                ran = await asyncio.to_thread(run, *map(str, words), "--data", str(data))
                assert ran.code == 1
                assert "keeps its sessions in PostgreSQL, and not in the data folder" in ran.err

    asyncio.run(scenario())
    assert not list(tmp_path.glob("*.zip"))


def test_nul_in_an_old_text_is_mended_by_the_copy_and_counted_once(database: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        await live(tmp_path, None)
        store = SqliteStore.open(tmp_path)
        store._writing.execute("UPDATE mail SET body='a' || char(0) || 'b' WHERE sequence=1")
        await store.close()
        report = await copying.copy_folder(tmp_path, database)
        there = await PostgresqlStore.open(database)
        bodies = [mail.body for mail in await there.mailbox("default", "ben", limit=9)]
        await there.close()
        assert bodies.count("a\ufffdb") == report.mended == 1

    asyncio.run(scenario())


def test_the_commands_look_after_the_database(
    postgresql_server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with postgresql_server.database(empty=True) as address:
        assert main(["store", "check", address]) == 0
        assert "no tables yet" in capsys.readouterr().out
        assert main(["store", "migrate", address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"before": 0, "after": latest_version()}
        asyncio.run(live(tmp_path, None))
        assert main(["store", "copy", str(tmp_path), address]) == 0
        assert "and compared them all" in capsys.readouterr().out
        assert main(["store", "copy", str(tmp_path), address]) == 0
        assert "already, and the same. Start: whisperer serve" in capsys.readouterr().out
        assert main(["store", "check", "--store", address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["schema"] == latest_version()
        assert main(["backup", str(tmp_path / "x.zip"), "--store", address]) != 0
        there = ["--store", address, "--data", str(tmp_path)]
        assert main(["export", "unlisted", str(tmp_path / "session.zip"), *there]) == 1
        assert "There is no session 'unlisted'" in capsys.readouterr().err
    assert main(["store", "check"]) == 1
    assert "Name the database" in capsys.readouterr().err
    assert main(["store", "check", "mysql://HOST/db"]) == 1
    assert "Write it like postgresql://HOST:5432/DATABASE, with USER:PASSWORD@" in capsys.readouterr().err
    assert main(["store", "copy", str(tmp_path / "none"), "postgresql://h/d"]) == 1
    assert "There is no database in" in capsys.readouterr().err


def test_without_asyncpg_the_package_to_install_is_named(tmp_path: Path) -> None:
    program = (
        "import sys, asyncio; sys.modules['asyncpg'] = None\n"
        "from ai_whisperer import AsyncAgentSessionManager\n"
        "asyncio.run(AsyncAgentSessionManager(store='postgresql://h/d', templates=()).open())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "pip install 'ai-whisperer[cluster]'" in done.stderr


def test_a_session_in_postgresql_is_forked_and_compared_by_its_server(database: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = Settings(data=tmp_path, store=database, port=0, model="scripted", tags=("gpu",))
        async with running(settings) as server, Client(server.address.url, server.address.token) as client:
            await client.create_agent("ann", {"prompt": "You are Ann."})
            await client.run_task("ann", "hello")
            await client.at_rest()
            await client.set_needs(["gpu"])
            (at,) = await client.fork_points(2, limit=1)
            made = await client.fork_session(
                at, changes={"ann.prompt": "You are Anna."}, effects="recorded", new_session_id="fork"
            )
            assert made.session_ids == ["fork"]
            assert {each.needs for each in await client.list_sessions()} == {("gpu",)}
            assert (await client.session("fork").get_agent("ann")).definition.prompt == "You are Anna."
            found = await client.compare_sessions("fork")
            assert (found.is_same, found.first is not None and found.first.kind) == (False, "only_in_a")

    asyncio.run(scenario())
