"""MCP servers that hang at their start, or fail at first: nobody is held up who can do without them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ai_whisperer.domain.mcp import McpState
from ai_whisperer.domain.tasks import TaskState
from tests.acceptance.mcp_stage import Stage, odd, play, staged


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """What the server waits for."""
    return tmp_path / "go"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_whisperer.tools.mcp.server._PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr("ai_whisperer.tools.mcp.server._PAUSE_SECONDS", 0.05)


def allow(file: Path) -> None:
    file.touch()


def state_of(stage: Stage) -> McpState:
    [status] = stage.manager.list_mcp_servers()
    return status.state


@pytest.mark.usefixtures("impatient")
def test_tasks_go_on_without_the_tools_of_a_server_that_hangs_at_its_start(file: Path) -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("waits_for_file", str(file), timeout_seconds=30)}, "mcp__odd") as stage:
            for _ in range(3):
                await stage.run()
            assert state_of(stage) is McpState.STARTING
            assert stage.told("mcp.server_failed") == []
            allow(file)
            await stage.until(lambda: stage.told("mcp.tools_listed"))
            await stage.run()
        assert stage.offered == [[], [], [], ["mcp__odd__act"]]

    play(scenario)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_failed_at_its_start_is_tried_again_without_anybody_asking(file: Path) -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("needs_file", str(file))}, "mcp__odd") as stage:
            await stage.run()
            await stage.until(lambda: stage.told("mcp.server_failed"))
            allow(file)
            await stage.until(lambda: stage.told("mcp.tools_listed"))
            await stage.run()
        assert stage.offered == [[], ["mcp__odd__act"]]

    play(scenario)


@pytest.mark.usefixtures("impatient")
def test_an_agent_waits_for_the_tools_of_a_server_that_is_required_and_others_work_in_its_place(file: Path) -> None:
    async def scenario() -> None:
        server = odd("needs_file", str(file), required=True)
        async with staged({"odd": server}, "mcp__odd") as stage:
            await stage.manager.set_limits({"max_concurrent_loops": 1})
            task = await stage.manager.send_task("worker", "work")
            await stage.until(lambda: stage.told("mcp.server_failed"))
            await stage.manager.create_agent("other", {"tools": []})
            await stage.manager.run_task("other", "work")
            assert (await stage.manager.get_task(task)).state is TaskState.RUNNING
            assert stage.offered == [[]]
            allow(file)
            await stage.manager.wait_task(task)
        assert stage.offered == [[], ["mcp__odd__act"]]

    play(scenario)


@pytest.mark.usefixtures("impatient")
def test_an_agent_that_waits_for_a_server_that_is_required_keeps_no_tokens_from_others(file: Path) -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("needs_file", str(file), required=True)}, "mcp__odd") as stage:
            await stage.manager.set_limits({"max_tokens": 6_000})  # room for one request, not for two
            task = await stage.manager.send_task("worker", "work")
            await stage.until(lambda: stage.told("mcp.server_failed"))
            await stage.manager.create_agent("other", {"tools": []})
            async with asyncio.timeout(60):
                await stage.manager.run_task("other", "work")
            allow(file)
            await stage.manager.wait_task(task)
        assert stage.offered == [[], ["mcp__odd__act"]]

    play(scenario)


@pytest.mark.usefixtures("impatient")
def test_a_task_that_waits_for_a_server_that_is_required_can_be_cancelled(file: Path) -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("waits_for_file", str(file), required=True)}, "mcp__odd") as stage:
            task = await stage.manager.send_task("worker", "work")
            await stage.until(lambda: state_of(stage) is McpState.STARTING)
            cancelled = await stage.manager.cancel_task(task)
            assert cancelled.state is TaskState.CANCELLED
        assert stage.offered == []

    play(scenario)
