"""Opening and closing a session in bad circumstances."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ClosedError, StoreCorruptError, StoreInUseError
from ai_whisperer.models.base import Finished, ModelRequest, StreamEvent, TextDelta
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.tools.mcp.servers import McpServers
from tests.simulation.stage import call, opened, results_of, round_of


class StubbornModel:
    """Answers, but cannot be closed."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        del request
        yield TextDelta(text="done")
        yield Finished()

    async def close(self) -> None:
        raise OSError("no")


def test_a_model_client_that_cannot_be_closed_does_not_keep_the_session_from_closing(tmp_path: Path) -> None:
    async def run() -> None:
        for _ in range(2):
            async with AsyncAgentSessionManager(tmp_path, model_factory=lambda _: StubbornModel()) as manager:
                await manager.start_agent("alice") if "alice" not in manager.active_sessions else None
                await manager.run_task("alice", "go")

    asyncio.run(run())


def test_a_close_that_its_caller_gives_up_still_lets_go_of_the_database(tmp_path: Path) -> None:
    async def run() -> None:
        manager = AsyncAgentSessionManager(tmp_path, model_factory=lambda _: StubbornModel())
        await manager.open()
        await manager.create_agent("alice")
        closing = asyncio.ensure_future(manager.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        async with AsyncAgentSessionManager(tmp_path) as again:
            assert list(again.active_sessions) == ["alice"]

    asyncio.run(run())


def test_a_session_is_open_once_on_a_store(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteStore.open(tmp_path)
        async with AsyncAgentSessionManager(store=store) as first:
            with pytest.raises(StoreInUseError, match="open already"):
                await AsyncAgentSessionManager(store=store).open()
            async with AsyncAgentSessionManager(store=store, session_id="other") as other:
                task = await other.start_agent("alice")
                assert task.agent_id == "alice"
                assert first.list_agents() == []
        async with AsyncAgentSessionManager(store=store) as again:
            assert again.list_agents() == []
        await store.close()

    asyncio.run(run())


def test_a_row_that_cannot_be_read_is_told_as_damage(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncAgentSessionManager(tmp_path) as manager:
            await manager.create_agent("alice")
        store = SqliteStore.open(tmp_path)
        store._writing.execute("UPDATE agent SET definition = '{\"limits\": 5}'")
        await store.close()
        with pytest.raises(StoreCorruptError, match="cannot be read"):
            await AsyncAgentSessionManager(tmp_path).open()
        with pytest.raises(StoreCorruptError):
            await AsyncAgentSessionManager(tmp_path).open()

    asyncio.run(run())


@tool(idempotent=True)
async def look_up(word: str) -> str:
    """Look a word up."""
    await asyncio.sleep(100)
    return f"{word} found"


def looks_up(request: ModelRequest) -> Answer | str:
    return call("look_up", word="x") if round_of(request) == 0 else results_of(request)[0]


@pytest.mark.parametrize("provided", ["when opened", "later"])
def test_an_agent_whose_tools_are_not_provided_again_waits_for_them(provided: str) -> None:
    disk = SimulatedDisk()

    def manager_of(**options: Any) -> AsyncAgentSessionManager:
        return AsyncAgentSessionManager(
            store=disk.open(),
            model_factory=lambda _: FunctionModel(looks_up, latency_seconds=1.0),
            clock=VirtualClock(),
            **options,
        )

    async def first() -> None:
        manager = manager_of()
        await manager.open()
        await manager.create_agent("alice", tools=[look_up])
        await manager.send_task("alice", "go", task_id="t")
        await asyncio.sleep(50)
        disk.crash()

    async def second() -> None:
        manager = manager_of(agent_tools={"alice": [look_up]} if provided == "when opened" else {})
        await manager.open()
        if provided == "later":
            await asyncio.sleep(1000)
            assert manager.get_agent_status("alice").missing_tools == ("look_up",)
            assert (await manager.notifications())[-1].name == "agent.tools_missing"
            await manager.give_tools("alice", [look_up])
        ended = await manager.wait_task("t")
        assert ended.result is not None
        assert ended.result.final == "x found"
        assert manager.get_agent_status("alice").missing_tools == ()
        await manager.close()
        disk.crash()

    simulate(first())
    simulate(second())
    disk.close()


@pytest.mark.parametrize("provided", ["when opened", "later"])
@pytest.mark.parametrize("config", [None, {"tools": ["look_up"]}])
def test_an_agent_waits_for_tools_of_the_session_that_are_not_provided_again(
    provided: str, config: dict[str, Any] | None, caplog: pytest.LogCaptureFixture
) -> None:
    disk = SimulatedDisk()

    def manager_of(**options: Any) -> AsyncAgentSessionManager:
        return AsyncAgentSessionManager(
            store=disk.open(),
            model_factory=lambda _: FunctionModel(looks_up, latency_seconds=1.0),
            clock=VirtualClock(),
            **options,
        )

    async def first() -> None:
        manager = manager_of(tools=[look_up])
        await manager.open()
        await manager.create_agent("alice", config)
        await manager.send_task("alice", "go", task_id="running")
        await manager.send_task("alice", "go", task_id="queued")
        await asyncio.sleep(50)
        disk.crash()

    async def without() -> None:
        manager = manager_of()
        await manager.open()
        await manager.send_task("alice", "go", task_id="new")
        await asyncio.sleep(1000)
        assert manager.get_agent_status("alice").missing_tools == ("look_up",)
        assert {each.state for each in await manager.list_tasks("alice")} == {"running", "queued"}
        if provided == "later":
            await manager.give_tools("alice", [look_up])
            await all_found(manager)
        disk.crash()

    async def again() -> None:
        manager = manager_of(tools=[look_up])
        await manager.open()
        assert manager.get_agent_status("alice").missing_tools == ()
        await all_found(manager)
        await manager.close()
        disk.crash()

    async def all_found(manager: AsyncAgentSessionManager) -> None:
        for each in ("running", "queued", "new"):
            ended = await manager.wait_task(each)
            assert ended.result is not None
            assert ended.result.final == "x found"

    simulate(first())
    assert caplog.text == ""
    simulate(without())
    assert "1 of its agents wait for tools that nobody has provided (look_up): alice" in caplog.text
    simulate(again())
    disk.close()


def test_an_agent_that_has_all_tools_waits_for_those_too_that_came_later_but_not_for_optional_ones() -> None:
    disk = SimulatedDisk()
    by_chance = tool(look_up.function, name="by_chance", optional=True)

    def missing_with(*tools: Any) -> tuple[str, ...]:
        async def run() -> tuple[str, ...]:
            async with AsyncAgentSessionManager(store=disk.open(), tools=tools, clock=VirtualClock()) as manager:
                if "alice" not in manager.active_sessions:
                    await manager.create_agent("alice")
                    await manager.create_agent("bob", {"tools": ["check_mail"]})
                assert manager.get_agent_status("bob").missing_tools == ()
                found = manager.get_agent_status("alice").missing_tools
            disk.crash()
            return found

        return simulate(run())

    assert missing_with(by_chance) == ()
    assert missing_with(look_up) == ()
    assert missing_with() == ("look_up",)
    assert missing_with(look_up) == ()
    assert missing_with(tool(look_up.function, name="look_up", optional=True)) == ()
    assert missing_with() == ()
    disk.close()


def test_an_agent_that_is_defined_anew_waits_no_longer_for_tools_of_the_session_that_are_gone() -> None:
    disk = SimulatedDisk()

    async def first() -> None:
        async with AsyncAgentSessionManager(store=disk.open(), tools=[look_up], clock=VirtualClock()) as manager:
            await manager.create_agent("alice")
        disk.crash()

    async def second() -> None:
        async with AsyncAgentSessionManager(store=disk.open(), model="scripted", clock=VirtualClock()) as manager:
            await manager.stop_agent("alice")
            await manager.start_agent("alice", {})
            assert manager.get_agent_status("alice").missing_tools == ()
            assert (await manager.wait_task(await manager.send_task("alice", "go"))).state == "completed"
        disk.crash()

    simulate(first())
    simulate(second())
    disk.close()


def test_a_session_that_was_left_open_in_another_event_loop_says_so() -> None:
    manager = AsyncAgentSessionManager()

    async def first() -> None:
        await manager.open()
        await manager.create_agent("alice", auto_start=False)
        await manager.send_task("alice", "go", task_id="t")

    async def second() -> None:
        with pytest.raises(ClosedError, match="another event loop"):
            await manager.send_task("alice", "more")
        with pytest.raises(ClosedError, match="another event loop"):
            await manager.wait_task("t")

    asyncio.run(first())
    asyncio.run(second())


def test_a_forked_child_does_not_keep_the_database_when_its_parent_dies(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from ai_whisperer.store.sqlite import SqliteStore\n"
        "store = SqliteStore.open(sys.argv[1])\n"
        "reading, writing = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.write(writing, b'.')\n"
        "    sys.stdin.read()\n"
        "    os._exit(0)\n"
        "os.read(reading, 1)\n"
        "print(child, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) > 0
        parent.wait()
        SqliteStore.open(tmp_path).abandon()


def test_a_task_is_not_blamed_for_a_process_that_is_killed_while_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of tools do not end, and whoever waits for them is killed."""
    reached, never = asyncio.Event(), asyncio.Event()

    async def hanging(_: McpServers) -> None:
        reached.set()
        await never.wait()

    @tool
    async def work_on() -> str:
        """Never end."""
        await never.wait()
        return "done"

    async def main() -> None:
        store = SqliteStore.in_memory()
        manager = opened(store, lambda _: call("work_on"), tools=[work_on])
        await manager.open()
        await manager.create_agent("alice")
        await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        await store.flushed()
        ((begun,), session_id) = (await store.load(manager.session_id)).tasks, manager.session_id
        monkeypatch.setattr(McpServers, "close", hanging)
        closing = asyncio.ensure_future(manager.close(grace_seconds=1))
        await reached.wait()
        await store.flushed()
        (left,) = (await store.load(session_id)).tasks
        assert (begun.attempts, left.attempts) == (1, 0)
        closing.cancel()
        await asyncio.wait([closing])
        await store.close()

    simulate(main())
