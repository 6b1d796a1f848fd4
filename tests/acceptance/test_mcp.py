"""Tools of published MCP servers, called by agents over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.domain.mcp import McpState
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import DefinitionError
from ai_whisperer.templates.library import TemplateLibrary
from tests.acceptance.mcp_stage import everything, filesystem, is_alive, odd, play, staged

_LONG = ("mcp__all__trigger-long-running-operation", {"duration": 60, "steps": 600})


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server that talks HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = everything("streamableHttp")
    with subprocess.Popen(
        [server["command"], *server["args"]],
        env={**os.environ, "PORT": str(port)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if str(port) in line:
                    break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # a Node from PyPI is a program that starts another


def test_an_agent_works_with_the_tools_of_published_servers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("what is in the file")

    async def scenario() -> None:
        servers = {"all": everything(), "fs": filesystem(tmp_path)}
        grants = ("mcp__all__get-sum", "mcp__all__get-tiny-image", "mcp__fs", "mcp__all__no_such_tool")
        async with staged(servers, *grants) as stage:
            assert [status.state for status in stage.manager.list_mcp_servers()] == [McpState.NOT_STARTED] * 2
            total, image, text, outside = await stage.run(
                ("mcp__all__get-sum", {"a": 2, "b": 40}),
                ("mcp__all__get-tiny-image", {}),
                ("mcp__fs__read_text_file", {"path": str(tmp_path / "a.txt")}),
                ("mcp__fs__read_text_file", {"path": "/etc/passwd"}),
            )
            await stage.until(lambda: stage.told("mcp.tools_missing"))
        assert "42" in total.content
        assert "[image: image/png," in image.content
        assert text.content == "what is in the file"
        assert outside.is_error
        assert all(result.untrusted for result in (total, image, text, outside))
        assert {"mcp__all__get-sum", "mcp__all__get-tiny-image", "mcp__fs__write_file"} <= set(stage.offered[0])
        assert "mcp__all__echo" not in stage.offered[0]
        assert stage.told("mcp.tools_missing") == [{"agentId": "worker", "tools": ["mcp__all__no_such_tool"]}]
        assert len(stage.told("mcp.server_started")) == 2

    play(scenario)


def test_a_task_that_is_cancelled_ends_its_call_and_the_server_goes_on() -> None:
    async def scenario() -> None:
        async with staged({"all": everything()}, "mcp__all") as stage:
            stage.calls = [_LONG]
            task = await stage.manager.send_task("worker", "work")
            await stage.until(lambda: any(note.params.get("kind") == "tool" for note in stage.notes))
            cancelled = await stage.manager.cancel_task(task)
            assert cancelled.state is TaskState.CANCELLED
            assert (await stage.call("mcp__all__echo", message="still here")).content == "Echo: still here"
            assert stage.told("mcp.server_failed") == []

    play(scenario)


def test_a_server_that_is_killed_in_a_call_is_reported_and_started_again() -> None:
    async def scenario() -> None:
        async with staged({"all": everything()}, "mcp__all") as stage:
            stage.calls = [_LONG, ("mcp__all__echo", {"message": "back"})]
            task = await stage.manager.send_task("worker", "work")
            await stage.until(lambda: any(note.params.get("kind") == "tool" for note in stage.notes))
            os.killpg(_child_of(os.getpid(), "index.js\0stdio"), signal.SIGKILL)
            done = await stage.manager.wait_task(task)
        assert done.result is not None
        killed, echoed = done.result.final.splitlines()
        assert "has failed: it was ended by signal 9" in killed
        assert "This call was begun: it may have taken effect or not." in killed
        assert echoed == "Echo: back"
        assert len(stage.told("mcp.server_started")) == 2
        [failed] = stage.told("mcp.server_failed")
        assert failed["willRetryAt"] > 0

    play(scenario)


def test_closing_the_session_ends_the_processes() -> None:
    async def scenario() -> None:
        async with staged({"all": everything()}, "mcp__all") as stage:
            await stage.run()
            pid = _child_of(os.getpid(), "index.js\0stdio")
            assert is_alive(pid)
        assert not is_alive(pid)

    play(scenario)


def test_an_agent_works_with_a_server_over_http(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_PASS", "correct-horse-battery")
    server = {"url": address, "headers": {"Authorization": "Bearer ${WEB_PASS}"}}

    async def scenario() -> None:
        async with staged({"web": server}, "mcp__web") as stage:
            total, long = await stage.run(
                ("mcp__web__get-sum", {"a": 2, "b": 40}),
                ("mcp__web__trigger-long-running-operation", {"duration": 0.1, "steps": 2}),
            )
        assert "42" in total.content
        assert "Long running operation completed" in long.content
        assert stage.told("mcp.server_stopped") == [{"name": "web"}]

    play(scenario)


def test_an_address_where_nobody_answers_is_named() -> None:
    async def scenario() -> None:
        server = {"url": "http://127.0.0.1:9/mcp", "timeout_seconds": 5.0}
        async with staged({"web": server}, "mcp__web") as stage:
            result = await stage.call("mcp__web__echo")
        assert result.is_error
        assert "The MCP server 'web' cannot be used" in result.content

    play(scenario)


def test_without_a_grant_an_agent_has_nothing_of_a_server() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("plain")}, "send_mail") as stage:
            await stage.manager.create_agent("free", {})
            await stage.manager.wait_task(await stage.manager.send_task("free", "work"))
            result = await stage.call("mcp__odd__act")
            [status] = stage.manager.list_mcp_servers()
        assert status.state is McpState.NOT_STARTED
        assert all(offered == [] for offered in stage.offered)
        assert "You have no tool 'mcp__odd__act'" in result.content

    play(scenario)


def test_a_file_for_claude_code_grants_tools_of_servers_that_are_there(tmp_path: Path) -> None:
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    written = "---\nname: a\ndescription: d\ntools: Read, mcp__odd__act, mcp__nobody__x\n---\nWork.\n"
    (agents / "a.md").write_text(written)

    async def scenario() -> None:
        async with staged({"odd": odd("plain")}, "mcp__odd") as stage:
            await stage.manager.create_agent("a", template=TemplateLibrary([agents]).get("a"))
            granted = stage.manager.active_sessions["a"].record.definition.tools or ()
        assert [name for name in granted if name.startswith("mcp__")] == ["mcp__odd__act"]

    play(scenario)


def test_a_grant_of_a_server_that_is_not_there_is_refused_with_those_that_are() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("plain")}, "mcp__odd") as stage:
            with pytest.raises(DefinitionError, match=r"does not have: nobody\. It has: odd\."):
                await stage.manager.create_agent("other", {"tools": ["mcp__nobody__act"]})

    play(scenario)


@pytest.mark.parametrize(("idempotent", "calls"), [([], 1), (["act"], 2)])
def test_a_call_that_was_under_way_when_the_runtime_was_killed(
    tmp_path: Path, idempotent: list[str], calls: int
) -> None:
    witness = tmp_path / "heard"
    program = (sys.executable, "-m", "tests.acceptance.mcp_programs.dying_runtime", tmp_path / "data", witness)

    def heard_calls() -> int:
        return witness.read_text().count("tools/call") if witness.exists() else 0

    async def scenario() -> None:
        runtime = await asyncio.create_subprocess_exec(*program, cwd=Path(__file__).parents[2])
        server = odd("plain", str(witness), idempotent=idempotent)
        try:
            async with asyncio.timeout(60):
                while not heard_calls():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            runtime.kill()
            await runtime.wait()
        async with staged({"odd": server}, "mcp__odd", data=tmp_path / "data") as stage:
            [task] = await stage.manager.list_tasks("worker")
            done = await stage.manager.wait_task(task)
        assert done.result is not None
        assert ("Outcome unknown" in done.result.final) == (calls == 1)
        assert ("acted" in done.result.final) == (calls == 2)
        assert heard_calls() == calls

    play(scenario)


def _child_of(parent: int, words: str) -> int:
    """The child process with these words in its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and words in (folder / "cmdline").read_text() and fields[0] not in "ZX":
                return int(folder.name)
        except OSError:
            continue
    raise AssertionError(f"There is no child with {words}.")
