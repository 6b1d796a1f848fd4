"""Sessions that are made, opened, deleted and mended at the same time."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from ai_whisperer.domain.sessions import SessionSummary
from ai_whisperer.errors import (
    ClosedError,
    DuplicateIdError,
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreRefusedError,
    UnknownSessionError,
)
from ai_whisperer.models.base import Model
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.api.agent_log import AGENTS
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.host import SessionHost
from ai_whisperer.settings import LOCAL
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import simulate
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.committers import Before, Committed, InlineCommitter
from ai_whisperer.templates.library import TemplateLibrary

Scene = Callable[[SessionHost], Awaitable[None]]


class BreakingCommitter(InlineCommitter):
    """Commits until it is told with what to fail."""

    failure: BaseException | None = None

    def commit(self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None) -> None:
        if self.failure is None:
            super().commit(connection, done, units=units, before=before)
        else:
            done(self.failure)


def host_on(store: SqliteStore, *, work: Path | None = None) -> SessionHost:
    def model(_: str) -> Model:
        return FunctionModel(lambda _: "done")

    return SessionHost(store, model="any", templates=TemplateLibrary([]), model_factory=model, work=work)


def play(folder: Path, scene: Scene, committer: InlineCommitter | None = None) -> None:
    async def main() -> None:
        store = SqliteStore.open(folder, committer=committer or InlineCommitter())
        host = host_on(store, work=folder)
        await host.start(session_id="default")
        try:
            await scene(host)
        finally:
            await host.close(grace_seconds=0)
            await store.close()

    asyncio.run(main())


async def all_of(*deeds: Awaitable[Any]) -> list[Any]:
    """What came of each, an exception too."""
    return await asyncio.gather(*deeds, return_exceptions=True)


def test_of_two_who_make_the_same_session_at_once_one_gets_it(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        first, second = await all_of(host.create("alice", "mine"), host.create("bob", "mine"))
        assert first.owner == "alice"
        assert isinstance(second, DuplicateIdError)
        assert (await host.get("alice", "mine")).owner == "alice"
        with pytest.raises(UnknownSessionError):
            await host.get("bob", "mine")

    play(tmp_path, scene)


def test_a_session_can_be_used_before_it_is_on_disk(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        making = asyncio.ensure_future(host.create("alice", "new"))
        await asyncio.sleep(0)
        assert not making.done()
        session = await host.session("alice", "new")
        await session.create_agent("worker")
        await making
        assert [each.agents for each in await host.list("alice", limit=10)] == [1]

    play(tmp_path, scene)


def test_many_who_ask_for_a_session_get_the_same_one(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        found = await all_of(*(host.session(LOCAL, "default") for _ in range(10)))
        assert len(set(map(id, found))) == 1

    play(tmp_path, scene)


def test_a_session_that_is_deleted_takes_the_files_of_its_agents_along(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        for name in ("gone", "stays"):
            await host.create("alice", name)
            session = await host.session("alice", name)
            agent = await session.create_agent("worker", {"tools": ["write_file"]})
            await asyncio.to_thread(agent._agent.workplace.prepare)
        await host.delete("alice", "gone")

    play(tmp_path, scene)
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["stays"]


def test_nobody_gets_a_session_of_somebody_else_open_or_not(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        await host.create("alice", "hers")
        for _ in range(2):
            with pytest.raises(UnknownSessionError, match="Sessions: none"):
                await host.session("bob", "hers")
            with pytest.raises(UnknownSessionError):
                await host.delete("bob", "hers")
            await host.session("alice", "hers")

    play(tmp_path, scene)


def test_of_two_who_delete_a_session_one_does_and_those_who_use_it_are_told(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        await host.create(LOCAL, "doomed")
        session = await host.session(LOCAL, "doomed")
        await session.create_agent("worker")
        await session.send_task("worker", "go")
        deleted, again, asked, made = await all_of(
            host.delete(LOCAL, "doomed"),
            host.delete(LOCAL, "doomed"),
            host.session(LOCAL, "doomed"),
            host.create("bob", "doomed"),
        )
        assert deleted.agents == 1
        assert isinstance(again, UnknownSessionError)
        assert isinstance(asked, UnknownSessionError)
        assert isinstance(made, DuplicateIdError), "it is not gone yet"
        with pytest.raises(ClosedError):
            session.list_agents()
        assert (await host.create("bob", "doomed")).owner == "bob"
        assert (await host.session("bob", "doomed")).last_seq == 0

    play(tmp_path, scene)


async def made_long(host: SessionHost, session_id: str) -> None:
    await host.create(LOCAL, session_id)
    session = await host.session(LOCAL, session_id)
    await session.create_agent("worker")
    await asyncio.gather(*(session.broadcast_event("tick", number) for number in range(1_200)))


async def begun(deletion: asyncio.Task[SessionSummary], host: SessionHost) -> None:
    """Wait until the session is gone and its rows are not."""
    while await host._store.session("doomed") is not None:
        await host.flushed()
        await asyncio.sleep(0)
    assert not deletion.done()


def test_a_session_is_deleted_to_its_end_even_if_whoever_asked_for_it_has_gone(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        await made_long(host, "doomed")
        deletion = asyncio.ensure_future(host.delete(LOCAL, "doomed"))
        await begun(deletion, host)
        deletion.cancel()
        await all_of(deletion)
        with pytest.raises(DuplicateIdError):
            await host.create("bob", "doomed")
        await asyncio.gather(*host._deletions)
        await host.create("bob", "doomed")
        session = await host.session("bob", "doomed")
        assert (session.last_seq, session.list_agents()) == (0, [])

    play(tmp_path, scene)


def test_a_session_whose_deletion_is_cut_short_by_the_end_of_the_server_is_gone_at_the_next_start(
    tmp_path: Path,
) -> None:
    async def first(host: SessionHost) -> None:
        await made_long(host, "doomed")
        deletion = asyncio.ensure_future(host.delete(LOCAL, "doomed"))
        await begun(deletion, host)
        await host.close(grace_seconds=0)
        (cut,) = await all_of(deletion)
        assert isinstance(cut, asyncio.CancelledError)

    async def second(host: SessionHost) -> None:
        assert [each.id for each in await host.list(LOCAL, limit=10)] == ["default"]
        await host.create("bob", "doomed")
        assert (await host.session("bob", "doomed")).last_seq == 0

    play(tmp_path, first)
    play(tmp_path, second)


def test_whoever_gets_the_id_of_a_deleted_session_cannot_read_its_logs(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        for owner, prompt in (("alice", "hers"), ("bob", "his")):
            await host.create(owner, "plans")
            session = await host.session(owner, "plans")
            await session.create_agent("worker")
            await session.run_task("worker", prompt)
            told = str((await session.read_log("worker", limit=1_000)).entries)
            assert prompt in told
            assert (owner == "alice") == ("hers" in told)
            await host.delete(owner, "plans")

    play(tmp_path, scene)


def test_a_handler_of_somebody_that_does_not_return_holds_no_session_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai_whisperer.server.held_session.LOG_SECONDS", 0.05)
    let_go = threading.Event()

    class Stuck(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            let_go.wait(20)

    async def scene(host: SessionHost) -> None:
        session = await host.session(LOCAL, "default")
        await session.create_agent("worker")
        await session.run_task("worker", "go")
        await host.close(grace_seconds=0)
        assert not let_go.is_set()
        let_go.set()

    stuck = Stuck()
    monkeypatch.setattr(AGENTS, "level", logging.DEBUG)
    AGENTS.addHandler(stuck)
    try:
        play(tmp_path, scene)
    finally:
        let_go.set()
        AGENTS.removeHandler(stuck)


async def refuse_something(session: AsyncAgentSessionManager) -> None:
    """Have the store refuse a unit of the session, which stops it."""
    worker = await session.create_agent("worker")
    decision = session._session.kernel.decide("a fault")
    decision.unit.insert_agent(worker.record)
    with pytest.raises(StoreRefusedError):
        await decision.commit()
    assert session.failure is not None


def test_a_session_that_the_store_refused_something_is_opened_anew_once(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        broken = await host.session(LOCAL, "default")
        await refuse_something(broken)
        found = await all_of(*(host.session(LOCAL, "default") for _ in range(5)))
        assert len(set(map(id, found))) == 1
        assert found[0] is not broken
        assert await found[0].run_task("worker", "go") == "done"
        assert not host.failed.done(), "only this session was hit"

    play(tmp_path, scene)


def test_who_asks_while_a_session_is_mended_waits_for_it(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        await refuse_something(await host.session(LOCAL, "default"))
        first = asyncio.ensure_future(host.session(LOCAL, "default"))
        others = []
        while not first.done():
            for shown in host.open_sessions:
                shown.list_agents()  # raises for one that is being closed
            others.append(asyncio.ensure_future(host.session(LOCAL, "default")))
            await asyncio.sleep(0)
        assert len(others) > 2
        assert {id(each) for each in await asyncio.gather(*others)} == {id(first.result())}

    play(tmp_path, scene)


def test_a_session_that_is_deleted_while_it_is_mended_is_gone(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        await host.create(LOCAL, "doomed")
        await refuse_something(await host.session(LOCAL, "doomed"))
        asked, deleted, later = await all_of(
            host.session(LOCAL, "doomed"), host.delete(LOCAL, "doomed"), host.session(LOCAL, "doomed")
        )
        assert isinstance(asked, UnknownSessionError)
        assert isinstance(later, UnknownSessionError)
        assert deleted.agents == 1
        assert [each.id for each in await host.list(LOCAL, limit=10)] == ["default"]
        assert host.open_sessions == []

    play(tmp_path, scene)


def test_a_host_that_is_closed_while_a_session_is_mended_leaves_nothing_open(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        await refuse_something(await host.session(LOCAL, "default"))
        asked, _ = await all_of(host.session(LOCAL, "default"), host.close(grace_seconds=0))
        assert isinstance(asked, ClosedError)
        with pytest.raises(ClosedError, match="shutting down"):
            await host.create(LOCAL)

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("failure", "kind"), [(apsw.FullError("full"), StoreFullError), (apsw.IOError("broken"), StoreFailedError)]
)
@pytest.mark.parametrize("opened", [True, False], ids=["in a session", "in none"])
def test_a_store_that_fails_as_a_whole_ends_the_server(
    tmp_path: Path,
    failure: BaseException,
    kind: type[StoreError],
    opened: bool,  # noqa: FBT001
) -> None:
    committer = BreakingCommitter()

    async def scene(host: SessionHost) -> None:
        session = await host.session(LOCAL, "default") if opened else None
        committer.failure = failure
        with pytest.raises(kind):
            await (session.create_agent("worker") if session else host.create(LOCAL, "new"))
        async with asyncio.timeout(60):
            assert isinstance(await host.failed, kind)

    play(tmp_path, scene, committer)


@pytest.mark.parametrize("seed", range(10))
def test_a_store_whose_reads_take_time_confuses_nobody(seed: int) -> None:
    disk = SimulatedDisk(seed, slowest_read_seconds=0.1)

    async def main() -> None:
        store = disk.open()
        host = host_on(store)
        await host.start(session_id="default")
        made = await all_of(host.create("alice", "hers"), host.create("bob", "hers"))
        assert [type(each) for each in made if isinstance(each, Exception)] == [DuplicateIdError]
        owner = next(each.owner for each in made if isinstance(each, SessionSummary))
        *found, _ = await all_of(
            *(host.session(owner, "hers") for _ in range(5)), host.set_limits({"max_task_seconds": 7})
        )
        assert len(set(map(id, found))) == 1, "it was opened once"
        held = {each.name: each.value for each in found[0].get_limits().limits}
        assert held["max_task_seconds"] == 7, "limits that are set while it is opened hold for it"
        await host.create(LOCAL, "doomed")
        await all_of(host.session(LOCAL, "doomed"), host.delete(LOCAL, "doomed"), host.session(LOCAL, "doomed"))
        assert "doomed" not in [each.id for each in await host.list(LOCAL, limit=10)]
        await host.create(LOCAL, "late")
        opening = asyncio.ensure_future(host.session(LOCAL, "late"))
        await asyncio.sleep(0.01)
        await host.close(grace_seconds=0)
        await asyncio.wait([opening])
        assert isinstance(opening.exception(), ClosedError) or opening.result() not in host.open_sessions
        await store.close()

    simulate(main(), seed=seed)
    disk.close()


def test_whoever_asks_for_a_session_that_is_being_let_go_gets_it_when_it_is_closed(tmp_path: Path) -> None:
    async def scene(host: SessionHost) -> None:
        session = await host.session(LOCAL, "default")
        going = asyncio.create_task(host.let_go("default", grace_seconds=5))
        while host.open_session(LOCAL, "default") is session:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert host.open_session(LOCAL, "default") is None
        assert await host.session(LOCAL, "default") is not session
        await going

    play(tmp_path, scene)
