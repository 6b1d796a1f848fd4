"""MCP servers in the settings, the names of their tools, their delays after failures, and what the doctor says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.cli.doctor.mcp import check_mcp
from ai_whisperer.domain.clock import SystemClock
from ai_whisperer.domain.notifications.mcp import McpServerFailed, McpServerTold
from ai_whisperer.errors import McpConfigError, McpError, SettingsError
from ai_whisperer.mcp_config import McpServerConfig, filled, mcp_servers_from
from ai_whisperer.secrets import redacted
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import LoadedSettings
from ai_whisperer.tools.mcp.backoff import Backoff
from ai_whisperer.tools.mcp.names import exposed_names, server_of, tool_of
from ai_whisperer.tools.mcp.process import ServerProcess, start_process
from ai_whisperer.tools.mcp.server import McpServer

SERVERS = """
port = 1

[mcp.files]
command = "files"
cwd = "here"
env = { KEY = "${THE_KEY}", MODE = "plain words" }

[mcp.web]
url = "https://web.example/mcp?key=abc"
headers = { Authorization = "Bearer written-down-here" }
"""


def load(folder: Path, toml: str) -> LoadedSettings:
    (folder / "whisperer.toml").write_text(toml)
    return load_settings({}, environment={}, folder=folder)


def test_servers_are_tables_of_the_file(tmp_path: Path) -> None:
    servers = load(tmp_path, SERVERS).values.mcp
    assert list(servers) == ["files", "web"]
    assert servers["files"].cwd == tmp_path / "here"
    assert list(servers["files"].variables()) == ["THE_KEY"]
    assert servers["web"].target == "https://web.example/mcp"


def test_what_may_be_secret_of_a_server_is_not_shown(tmp_path: Path) -> None:
    loaded = load(tmp_path, SERVERS)
    shown = str(loaded.shown()) + repr(loaded.values)
    assert "plain words" not in shown
    assert "written-down-here" not in shown
    for secret in ("written-down-here", "plain words"):
        assert secret not in redacted(f"The server said: bad key {secret}")


@pytest.mark.parametrize(
    ("table", "line", "words"),
    [
        ('[mcp.a]\nargs = ["x"]', 2, "either a command that is run, or a url"),
        ('[mcp.a]\ncommand = "x"\nurl = "http://x"', 3, "State one of them"),
        ('[mcp.a]\ncommand = "x"\nargs = "y"', 4, "Expected `array`"),
        ('[mcp.a]\ncommand = "x"\n[mcp.a.env]\nPORT = 1', 4, "Expected `str`, got `int`"),
        ('[mcp.a]\ncommand = "x"\ncomand = "y"', 4, "unknown field `comand`"),
        ('[mcp.a]\nurl = "ftp://x"', 3, "an address such as"),
        ('[mcp.a]\nurl = "http://x/"\nheaders = { "a b" = "c" }', 4, "cannot be a header"),
        ('[mcp.a]\nurl = "http://x/"\nargs = ["c"]', 4, "only a server with a command has it"),
        ('[mcp.a]\ncommand = "x"\ntimeout_seconds = 0', 4, "more than 0"),
        ('[mcp.b]\ncommand = "x"\n[mcp.a__b]\ncommand = "y"', 4, "cannot be the name of an MCP server"),
        ("mcp = 5", 2, "given by name"),
    ],
)
def test_a_description_that_is_wrong_is_named_with_its_line(tmp_path: Path, table: str, line: int, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, f"# mine\n{table}\n")
    assert f"(whisperer.toml, line {line})" in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize("given", [5, [], {"a": 5}, {5: {"command": "x"}}, {"a": {}}, {"a": {"command": 5}}])
def test_servers_that_are_provided_are_checked_too(given: Any) -> None:
    with pytest.raises(McpConfigError):
        mcp_servers_from(given, folder=Path())


def test_variables_are_filled_in_and_others_are_left() -> None:
    assert filled("a ${B} $C ${D}", {"B": "1", "D": "2"}) == ("a 1 $C 2", ["1", "2"])


def test_a_name_says_the_server_and_the_tool() -> None:
    assert (server_of("mcp__a-b__c__d"), tool_of("mcp__a-b__c__d")) == ("a-b", "c__d")
    assert (server_of("mcp__a"), tool_of("mcp__a"), tool_of("mcp__a__*")) == ("a", "*", "*")
    assert server_of("send_mail") is None


def test_names_do_not_depend_on_the_order_in_which_a_server_lists_them() -> None:
    tools = ["a b", "a.b", "x" * 100, "x" * 101, "plain"]
    names = exposed_names("s", tools)
    assert names == exposed_names("s", reversed(tools))
    assert sorted(names.values()) == sorted(tools)
    assert all(len(name) <= 64 for name in names)


def test_a_server_that_fails_waits_longer_each_time_and_then_until_the_failures_have_passed() -> None:
    backoff = Backoff()
    delays = [backoff.failed(1000.0 + number) - 1000 - number for number in range(4)]
    assert delays == [0, 1, 2, 4]
    assert backoff.failed(1010.0) == 1600.0
    assert backoff.gave_up
    assert backoff.failed(2000.0) == 2000.0


def test_the_doctor_tells_of_programs_and_variables_that_are_not_there(tmp_path: Path) -> None:
    servers = {
        "sound": McpServerConfig(command="sh"),
        "gone": McpServerConfig(command="no-such-program-anywhere"),
        "elsewhere": McpServerConfig(command="sh", cwd=tmp_path / "nowhere"),
        "web": McpServerConfig(url="https://web.example/mcp", headers={"Authorization": "Bearer ${WEB_KEY}"}),
    }
    found = [(each.level, each.found) for each in check_mcp(servers, {})]
    assert found == [
        ("ok", "sound: sh"),
        ("problem", "gone: there is no program 'no-such-program-anywhere'"),
        ("problem", f"elsewhere: there is no folder {tmp_path / 'nowhere'}"),
        ("problem", "web: not set: WEB_KEY"),
    ]
    assert list(check_mcp({}, {})) == []


def test_a_server_that_does_not_answer_its_greeting_does_not_hold_up_the_end_of_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ai_whisperer.tools.mcp.connection._START_SECONDS", 1e3)
    monkeypatch.setattr("ai_whisperer.tools.mcp.connection._CLOSE_SECONDS", 1e3)
    config = mcp_servers_from({"silent": {"command": "sleep", "args": ["1000"], "timeout_seconds": 1e3}}, folder=Path())

    async def main() -> None:
        begun = asyncio.Event()
        server = McpServer("silent", config["silent"], clock=SystemClock(), tell=lambda *_: None)
        start = ServerProcess.__init__

        def watched(self: ServerProcess, process: asyncio.subprocess.Process) -> None:
            start(self, process)
            begun.set()

        monkeypatch.setattr(ServerProcess, "__init__", watched)
        async with asyncio.timeout(30):
            starting = asyncio.create_task(server.start())
            await begun.wait()
            await server.close()
            with pytest.raises(McpError, match="was stopped with its session"):
                await starting

    asyncio.run(main())


def test_a_server_that_failed_is_not_started_again_after_its_session_has_ended() -> None:
    config = mcp_servers_from({"failing": {"command": "false"}}, folder=Path())
    told: list[McpServerTold] = []

    async def main() -> None:
        server = McpServer("failing", config["failing"], clock=SystemClock(), tell=told.append)
        for _ in range(2):
            with pytest.raises(McpError):
                await server.listed()
        waiting = asyncio.create_task(server.listed())
        await asyncio.sleep(0)
        await server.close()
        with pytest.raises(McpError, match="was stopped with its session"):
            await waiting

    asyncio.run(main())
    assert [type(each) for each in told] == [McpServerFailed, McpServerFailed]


def test_who_is_in_the_group_of_a_server_and_who_left_it_are_waited_for_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = mcp_servers_from({"it": {"command": "sleep", "args": ["1000"]}}, folder=Path())

    async def main() -> None:
        looked = asyncio.Event()

        async def group_has_ended(_: int) -> None:
            await looked.wait()

        async def family_has_ended(_: object) -> None:
            looked.set()

        for each in (group_has_ended, family_has_ended):
            monkeypatch.setattr(f"ai_whisperer.tools.mcp.process.{each.__name__}", each)
        process = await start_process("it", config["it"], {})
        async with asyncio.timeout(30):
            await process.end(in_peace=False)

    asyncio.run(main())
