"""MCP servers that speak nonsense: the agent is told what is wrong, and nothing else suffers."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer.domain.mcp import McpState
from tests.acceptance.mcp_stage import is_alive, odd, play, staged

_DIGEST = hashlib.sha256(b"ABCD").hexdigest()[:32]


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("exits", "ended with the code 1; it said: no licence was found for password=[secret]"),
        ("endless_garbage", "lines that are not JSON-RPC messages"),
        ("huge_line", "it wrote a line that has no end"),
        ("closes_output", "it closed its output"),
        ("wrong_greeting", "its answer to initialize is not one of an MCP server"),
    ],
)
def test_a_server_that_does_not_begin_is_announced_and_its_agent_works_without_it(mode: str, error: str) -> None:
    async def scenario() -> None:
        assert error in await failure_of(odd(mode))

    play(scenario)


async def failure_of(server: dict[str, Any]) -> str:
    """Why the server cannot be used: that is told, and its agent works without it."""
    async with staged({"odd": server}, "mcp__odd", "send_mail") as stage:
        assert await stage.run() == []
        [status] = stage.manager.list_mcp_servers()
    assert status.state is McpState.FAILED
    assert stage.offered[0] == []
    [told] = stage.told("mcp.server_failed")
    assert told["error"] == status.error
    return status.error or ""


@pytest.mark.parametrize(("mode", "wrote"), [("silent", ""), ("garbage", " (it wrote 'Welcome to the server!'")])
def test_a_server_that_does_not_answer_is_given_up_in_time_and_what_it_wrote_is_told(mode: str, wrote: str) -> None:
    async def scenario() -> None:
        for seconds in (0.5, 5.0, 25.0):  # a busy machine takes its time to start a program
            error = await failure_of(odd(mode, timeout_seconds=seconds))
            assert f"did not answer within {seconds:g} seconds" in error
            if wrote in error:
                return
        pytest.fail(f"it is not told that it wrote something: {error}")

    play(scenario)


def test_a_command_that_is_not_there_is_named() -> None:
    async def scenario() -> None:
        async with staged({"odd": {"command": "no-such-program-anywhere"}}, "mcp__odd__act") as stage:
            result = await stage.call("mcp__odd__act")
        assert result.is_error
        assert "'no-such-program-anywhere': No such file or directory" in result.content

    play(scenario)


def test_a_secret_that_was_written_down_is_not_in_what_a_server_says_last() -> None:
    command = {"command": "/bin/sh", "args": ["-c", 'echo "bad key $KEY" >&2'], "env": {"KEY": "horse-of-python"}}

    async def scenario() -> None:
        async with staged({"odd": command}, "mcp__odd") as stage:
            await stage.run()
            [failed] = stage.told("mcp.server_failed")
            assert "it said: bad key [secret]" in failed["error"]

    play(scenario)


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)

    async def scenario() -> None:
        async with staged({"odd": odd("plain", env={"KEY": "${NOT_SET_ANYWHERE}"})}, "mcp__odd") as stage:
            result = await stage.call("mcp__odd__act")
        assert "The environment variable NOT_SET_ANYWHERE is not set" in result.content

    play(scenario)


def test_tools_that_cannot_be_offered_are_left_out_and_told() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("odd_tools")}, "mcp__odd__*") as stage:
            await stage.run()
            [status] = stage.manager.list_mcp_servers()
        [offered] = stage.offered
        assert len(offered) == 4
        assert offered[0] == "mcp__odd__fine"
        assert all(len(name) <= 64 for name in offered)
        assert len(set(offered)) == 4
        descriptions = [spec.description for spec in stage.requests[0].tools if spec.name == "mcp__odd__fine"]
        assert [len(each) for each in descriptions] == [4_001]
        assert len(status.problems) == 6
        assert "the tool 'text' is left out: its inputSchema is not that of an object." in status.problems

    play(scenario)


def test_a_server_that_dies_in_a_call_leaves_its_outcome_open_and_is_started_again() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("dies_in_a_call")}, "mcp__odd") as stage:
            first, second = await stage.run(("mcp__odd__act", {}), ("mcp__odd__act", {"text": "again"}))
        for result in (first, second):
            assert result.is_error
            assert "has failed: it ended with the code 3. This call was begun" in result.content
            assert "it may have taken effect" in result.content
        assert len(stage.told("mcp.server_started")) >= 2
        assert len(stage.told("mcp.server_failed")) >= 2

    play(scenario)


def test_a_server_that_fails_again_and_again_is_refused_with_the_reason() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("exits")}, "mcp__odd") as stage:
            server = stage.manager._session.supplies.mcp.find("odd")
            for _ in range(4):
                server._backoff.failed(time.time())
            result = await stage.call("mcp__odd__act")
        assert result.is_error
        assert "It is started again in" in result.content
        assert len(stage.told("mcp.server_failed")) == 1

    play(scenario)


def test_a_call_without_an_answer_is_given_up_and_taken_back(tmp_path: Path) -> None:
    witness = tmp_path / "heard"

    async def scenario() -> None:
        async with staged({"odd": odd("hangs_in_a_call", str(witness))}, "mcp__odd") as stage:
            await stage.run()
            server = stage.manager._session.supplies.mcp.find("odd")
            server.config = replace(server.config, timeout_seconds=0.2)  # only now: to begin may take longer
            result = await stage.call("mcp__odd__act")
            assert "did not answer within 0.2 seconds. This call was begun" in result.content
            await stage.until(lambda: "notifications/cancelled" in witness.read_text())

    play(scenario)


def test_a_task_that_is_cancelled_takes_its_call_back_at_the_server(tmp_path: Path) -> None:
    witness = tmp_path / "heard"

    async def scenario() -> None:
        async with staged({"odd": odd("hangs_in_a_call", str(witness))}, "mcp__odd") as stage:
            stage.calls = [("mcp__odd__act", {})]
            task = await stage.manager.send_task("worker", "work")
            await stage.until(lambda: witness.exists() and "tools/call" in witness.read_text())
            await stage.manager.cancel_task(task)
            await stage.until(lambda: "notifications/cancelled" in witness.read_text())

    play(scenario)


def test_answers_that_are_none_become_errors_that_a_model_can_read() -> None:
    async def scenario() -> None:
        servers = {"odd": odd("answers_oddly"), "no": odd("refuses")}
        async with staged(servers, "mcp__odd", "mcp__no") as stage:
            odd_one, refused = await stage.run(("mcp__odd__act", {}), ("mcp__no__act", {}))
        assert (odd_one.is_error, refused.is_error) == (True, True)
        assert "returned something that is not a tool result" in odd_one.content
        assert refused.content == "The MCP server 'no' refused: text must not be empty"

    play(scenario)


def test_an_answer_that_is_too_long_is_an_error_and_the_server_goes_on() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("long_answers")}, "mcp__odd") as stage:
            at_end, at_beginning, short = await stage.run(
                ("mcp__odd__act", {"text": "id last"}), ("mcp__odd__act", {}), ("mcp__odd__act", {"text": "short"})
            )
        for result in (at_end, at_beginning):
            assert result.is_error
            assert "bytes, and at most 2,097,152 are taken. Ask for less." in result.content
        assert short.content == "short"

    play(scenario)


def test_all_kinds_of_content_become_text_and_binary_data_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("all_kinds")}, "mcp__odd", data=tmp_path) as stage:
            result = await stage.call("mcp__odd__act")
        assert result.is_error
        assert result.untrusted
        assert result.content.splitlines() == [
            "words",
            f"[image: image/png, 4 bytes, sha256 {_DIGEST}, kept as received/{_DIGEST}.png]",
            "[resource file:///a]",
            "inside",
            "[link to file:///b: bee]",
            "[a part of the kind hologram, which cannot be shown]",
            "[a part that cannot be read]",
            '{"answer":42}',
        ]
        kept = tmp_path / "work" / "default" / "agents" / "worker" / "received" / f"{_DIGEST}.png"
        assert await asyncio.to_thread(kept.read_bytes) == b"ABCD"

    play(scenario)


def test_a_server_that_asks_for_things_is_refused_and_goes_on(tmp_path: Path) -> None:
    witness = tmp_path / "heard"

    async def scenario() -> None:
        async with staged({"odd": odd("asks_back", str(witness))}, "mcp__odd") as stage:
            assert (await stage.call("mcp__odd__act")).content == "acted"
            await stage.until(lambda: witness.read_text().count('"id":"s') == 4)

    play(scenario)
    heard = witness.read_text()
    assert heard.count("This client does not offer") == 3
    assert '"result":{}' in heard


@pytest.mark.parametrize("mode", ["floods", "flooding_stderr", "huge_line"])
def test_the_event_loop_turns_while_a_server_floods(mode: str) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def scenario() -> None:
        from ai_whisperer.tools.mcp import connection  # noqa: F401 - to load the library takes its time, once

        async with staged({"odd": odd(mode)}, "mcp__odd") as stage:
            turning = asyncio.create_task(turn())
            await stage.run()
            turning.cancel()

    play(scenario)
    assert turns > 200


def test_tools_are_listed_again_when_the_server_says_that_they_changed() -> None:
    async def scenario() -> None:
        async with staged({"odd": odd("changes")}, "mcp__odd") as stage:
            await stage.call("mcp__odd__act")
            result = await stage.call("mcp__odd__act")
        assert stage.offered[0] == ["mcp__odd__act"]
        assert stage.offered[1] == ["mcp__odd__other"]
        assert "You have no tool 'mcp__odd__act'" in result.content

    play(scenario)


def test_a_server_that_will_not_leave_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    async def scenario() -> None:
        async with staged({"odd": odd("ignores_the_end", str(pids))}, "mcp__odd") as stage:
            await stage.call("mcp__odd__act")
            family = [int(each) for each in pids.read_text().split()]
            assert [is_alive(each) for each in family] == [True] * 3
        assert [is_alive(each) for each in family] == [False] * 3
        assert stage.told("mcp.server_stopped") == [{"name": "odd"}]

    play(scenario)
