"""Pruning and deleting over the wire, and how clients continue past a log that was pruned."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager, Client, export_session
from ai_whisperer.core.retention import age_in_seconds
from ai_whisperer.errors import (
    ArchiveError,
    DuplicateIdError,
    InvalidInputError,
    LogPrunedError,
    StoreInUseError,
    UnknownAgentError,
    UnknownRoomError,
)
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.pruning import prune_all
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.templates.library import TemplateLibrary
from tests.acceptance.client_stage import StagedServer


def test_a_stream_continues_past_a_pruned_log_and_says_so(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("alice")
        await client.run_task("alice", "go")
        report = await client.prune(older_than=0)
        with pytest.raises(LogPrunedError) as refused:
            await client.notifications(after=0)
        assert refused.value.data["firstSeq"] == report.first_seq
        async with client.events(after=0) as events:
            skipped, pruned = await anext(events), await anext(events)
            assert (skipped.seq, skipped.name, skipped.params) == (0, "log.skipped", {"firstSeq": report.first_seq})
            assert (pruned.seq, pruned.name) == (report.first_seq, "session.pruned")
            await client.run_task("alice", "go")
            assert (await anext(events)).seq == report.first_seq + 1
        snapshot = await client.snapshot()
        assert snapshot.first_seq == report.first_seq
        entries = await client.read_log("alice")
        assert entries.entries, "the log of an agent is what is left of it"

    server.play(scenario, session_id=session_id)


def test_a_bad_age_is_refused_before_it_is_sent(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        for age in ("soon", "30", "30 moons", -1, True):
            with pytest.raises(InvalidInputError):
                await client.prune(older_than=age)

    server.play(scenario, session_id=session_id)


def test_agents_rooms_and_threads_are_deleted_and_storage_told(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        for name in ("alice", "bob"):
            await client.create_agent(name)
        await client.run_task("alice", "go", thread_id="talk")
        await client.create_room(["alice", "bob"], room_id="lobby")
        assert (await client.delete_thread("alice", "talk")).tasks == 1
        assert (await client.delete_room("lobby")).id == "lobby"
        assert (await client.delete_agent("bob")).agent_id == "bob"
        with pytest.raises(UnknownRoomError):
            await client.get_room("lobby")
        with pytest.raises(UnknownAgentError):
            await client.get_agent_status("bob")
        report = await client.storage()
        assert {part.name for part in report.parts} >= {"log", "tasks", "steps", "mail"}

    server.play(scenario, session_id=session_id)


def test_an_exported_session_is_imported_by_the_server_that_runs(tmp_path: Path) -> None:
    server = StagedServer(tmp_path / "data")
    try:

        async def scenario(client: Client) -> None:
            await client.create_agent("alice")
            await client.run_task("alice", "go", task_id="done")

        async def bring(client: Client) -> None:
            with pytest.raises(DuplicateIdError):
                await client.import_session(str(tmp_path / "s.zip"))
            with pytest.raises(ArchiveError):
                await client.import_session(str(tmp_path / "none.zip"), session_id="none")
            imported = await client.import_session(str(tmp_path / "s.zip"), session_id="twin")
            twin = client.session(imported.session_id)
            assert (await twin.get_task("done")).state == "completed"
            assert await twin.run_task("alice", "go") is not None

        server.play(scenario, session_id="mine")
        export_session(tmp_path / "data", "mine", tmp_path / "s.zip")
        server.play(bring, session_id="other")
    finally:
        server.close()


def test_a_server_prunes_by_itself_what_is_old_in_all_sessions_and_opens_no_others() -> None:
    async def main() -> None:
        store = SqliteStore.in_memory()
        host = SessionHost(
            store, model="m", templates=TemplateLibrary([]), model_factory=lambda _: FunctionModel(lambda _: "done")
        )
        await host.start(session_id="default")
        for name in ("old", "idle"):
            await host.create("local", name)
        old = await host.session("local", "old")
        await old.create_agent("ann")
        await old.run_task("ann", "go", task_id="t")
        assert await host.aged_sessions(age_in_seconds("0s")) == ["old"]
        await prune_all(host, "0s")
        assert (await old.get_task("t")).erased_at is not None
        assert {each.session_id for each in host.open_sessions} == {"old"}
        await prune_all(host, "1d")
        await host.close(grace_seconds=0)
        await store.close()

    simulate(main())


def test_an_imported_session_goes_on_at_once_and_nobody_makes_one_of_its_id_meanwhile(tmp_path: Path) -> None:
    async def main() -> None:
        data, file = tmp_path / "data", tmp_path / "s.zip"
        async with AsyncAgentSessionManager(data, model_factory=lambda _: FunctionModel(lambda _: "done")) as manager:
            await manager.create_agent("ann")
            await manager.pause_agent("ann")
            await manager.send_task("ann", "go", task_id="open")
        store = SqliteStore.open(data)
        host = SessionHost(
            store, model="m", templates=TemplateLibrary([]), model_factory=lambda _: FunctionModel(lambda _: "done")
        )
        await host.start(session_id="default")
        export_session(data, "default", file)
        importing = asyncio.ensure_future(host.import_session("local", str(file), session_id="twin", data=data))
        while not store.is_closed_off("twin"):  # noqa: ASYNC110 - at that instant
            await asyncio.sleep(0)
        with pytest.raises(DuplicateIdError):
            await host.create("other", "twin")
        with pytest.raises(StoreInUseError):
            await host.import_session("local", str(file), session_id="twin", data=data)
        await importing
        await host.take_up("local", ["twin"])
        assert "twin" in {each.session_id for each in host.open_sessions}
        assert (await host.get("local", "twin")).owner == "local"
        twin = await host.session("local", "twin")
        await twin.resume_agent("ann")
        assert (await twin.wait_task("open")).state == "completed"
        await host.close(grace_seconds=0)
        await store.close()

    asyncio.run(main())


def test_a_session_that_was_made_a_moment_ago_is_not_imported_over(tmp_path: Path) -> None:
    async def main() -> None:
        data, file = tmp_path / "data", tmp_path / "s.zip"
        store = SqliteStore.open(data)
        host = SessionHost(store, model="m", templates=TemplateLibrary([]))
        await host.start(session_id="default")
        export_session(data, "default", file)
        making = asyncio.ensure_future(host.create("other", "twin"))
        with pytest.raises(DuplicateIdError):
            await host.import_session("local", str(file), session_id="twin", data=data)
        await making
        assert (await host.get("other", "twin")).owner == "other"
        await host.close(grace_seconds=0)
        await store.close()

    asyncio.run(main())
