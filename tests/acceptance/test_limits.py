"""Limits over the wire and on the command line: set, shown, kept over a restart, and what callers are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.cli.main import main
from ai_whisperer.client import Client
from ai_whisperer.domain.limits import LimitScope, LimitsReport, SessionLimits
from ai_whisperer.errors import DefinitionError, ForbiddenError, InvalidInputError, LimitError, QueueFullError
from ai_whisperer.protocol import limits as protocol
from tests.acceptance.client_stage import StagedServer

ALICE = "token-of-alice-0123456789"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("limited")


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[StagedServer]:
    limits = SessionLimits(max_queue_length=500, max_steps_per_task=50)
    staged = StagedServer(data, tokens={"alice": ALICE}, limits=limits)
    yield staged
    staged.close()


def values(report: LimitsReport) -> dict[str, tuple[float, str]]:
    return {each.name: (each.value, str(each.source)) for each in report.limits}


def test_what_the_server_was_started_with_holds_below_what_a_session_states(
    server: StagedServer, session_id: str
) -> None:
    async def scenario(client: Client) -> None:
        other = client.session(f"{session_id}-b")
        await client.create_session(other.session_id, limits={"max_queue_length": 9, "max_started_agents": 1})
        assert values(await client.get_limits())["max_queue_length"] == (500, "setting")
        assert values(await other.get_limits())["max_queue_length"] == (9, "session")
        await other.create_agent("one")
        with pytest.raises(LimitError, match="1 agents are started and 1 may be"):
            await other.create_agent("two")
        with pytest.raises(DefinitionError, match="max_queue_length must be at least 1"):
            await client.create_session("bad", limits={"max_queue_length": 0})

    server.play(scenario, session_id=session_id)


def test_what_is_set_for_the_server_holds_in_all_sessions_and_after_a_restart(
    server: StagedServer, session_id: str
) -> None:
    async def before(client: Client) -> None:
        async with client.events(after=0) as events:
            report = await client.set_server_limits({"max_queue_length": 400})
            assert values(report)["max_queue_length"] == (400, "server")
            told = await anext(events)
            assert (told.name, told.params["scope"]) == ("limits.changed", "server")

    async def after(client: Client) -> None:
        report = await client.get_limits()
        assert values(report)["max_queue_length"] == (400, "server")
        assert values(report)["max_steps_per_task"] == (50, "setting")
        await client.set_server_limits({"max_queue_length": None})
        assert values(await client.get_limits())["max_queue_length"] == (500, "setting")

    server.play(before, session_id=session_id)
    server.end()
    server.begin()
    server.play(after, session_id=f"{session_id}-after")


def test_only_the_local_principal_changes_the_limits_of_the_server(server: StagedServer, session_id: str) -> None:
    async def scenario() -> None:
        async with Client(server.address.url, ALICE, session_id=session_id) as client:
            await client.create_session(session_id)
            await client.set_limits({"max_queue_length": 7})
            with pytest.raises(ForbiddenError, match="Only the principal 'local'"):
                await client.set_server_limits({"max_queue_length": 7})

    asyncio.run(scenario())


def test_a_scope_that_does_not_fit_is_refused(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        for scope, agent_id in ((LimitScope.TREE, None), (LimitScope.AGENT, None), (LimitScope.SESSION, "alice")):
            params = protocol.SetLimits(session_id=session_id, limits={}, scope=scope, agent_id=agent_id)
            with pytest.raises(InvalidInputError, match="nothing was changed"):
                await client._call(protocol.SET_LIMITS, params)

    server.play(scenario, session_id=session_id)


def test_a_full_queue_tells_the_caller_when_to_try_again(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create_agent("a", {"limits": {"max_queue_length": 1}})
        await client.pause_agent("a")
        await client.send_task("a", "waits")
        with pytest.raises(QueueFullError, match="Try again later") as caught:
            await client.send_task("a", "too many")
        assert caught.value.data["retryAfterSeconds"] == 60.0

    server.play(scenario, session_id=session_id)


def run(data: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["--data", str(data), *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_line_shows_and_sets_limits(
    server: StagedServer, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert server.address.url
    run(data, capsys, "agents", "create", "worker")
    code, out, _ = run(data, capsys, "limits", "set", "--agent", "worker", "max_queue_length=12")
    assert code == 0
    assert ["max_queue_length", "12", "0", "-", "agent"] in [line.split() for line in out.splitlines()]
    code, out, _ = run(data, capsys, "limits", "show", "--agent", "worker", "--json")
    assert {each["name"]: each["value"] for each in json.loads(out)["limits"]}["max_queue_length"] == 12
    code, out, _ = run(data, capsys, "limits", "set", "--agent", "worker", "max_queue_length=")
    assert ["max_queue_length", "500", "0", "-", "setting"] in [line.split() for line in out.splitlines()]
    code, out, _ = run(data, capsys, "limits", "set", "--server", "max_tokens=1000")
    assert ["max_tokens", "1,000", "0", "-", "server"] in [line.split() for line in out.splitlines()]
    code, out, _ = run(data, capsys, "limits", "set", "--server", "max_tokens=")
    assert ["max_tokens", "none", "0", "-", "default"] in [line.split() for line in out.splitlines()]
    code, out, _ = run(data, capsys, "limits")
    assert (code, out.split()[0]) == (0, "LIMIT")
    code, _, _ = run(data, capsys, "sessions", "create", "small", "--limits", "max_tokens=10, max_mail_bytes=99")
    code, out, _ = run(data, capsys, "limits", "--session", "small", "--json")
    assert {each["name"]: each["value"] for each in json.loads(out)["limits"]}["max_mail_bytes"] == 99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["max_queue_length"], "Write a limit as NAME=NUMBER"),
        (["max_queue_length=many"], "Write a limit as NAME=NUMBER"),
        (["max_qeue=5"], "There is no limit 'max_qeue'"),
        (["--server", "--agent", "worker", "max_tokens=5"], "cannot be used together"),
    ],
)
def test_limits_that_are_written_wrongly_are_explained(
    server: StagedServer, data: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert server.address.url
    code, _, told = run(data, capsys, "limits", "set", *arguments)
    assert code != 0
    assert message in told
