"""What is not needed at the start is not loaded then."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from ai_whisperer.cli import commands
from ai_whisperer.cli.catalog import COMMANDS, GROUPS
from ai_whisperer.cli.main import app_for

_LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"
_HEAVY = {
    "pydantic",
    "pydantic_ai",
    "openai",
    "anthropic",
    "httpx",
    "mcp",
    "uvicorn",
    "starlette",
    "websockets",
    "rich",
}
_COMMAND = """
import runpy, sys
sys.argv = ['whisperer', *{arguments!r}]
try:
    runpy.run_module('ai_whisperer', run_name='__main__')
except SystemExit:
    pass
"""


def loaded_by(program: str) -> set[str]:
    """The modules that a new interpreter has after this."""
    run = subprocess.run([sys.executable, "-c", f"{program}\n{_LOADED}"], check=True, capture_output=True, text=True)
    modules: list[str] = json.loads(run.stdout.splitlines()[-1])
    return set(modules)


def test_the_package_loads_nothing_but_its_version() -> None:
    loaded = loaded_by("import ai_whisperer")
    assert {name for name in loaded if name.startswith("ai_whisperer.")} == {"ai_whisperer.version"}
    assert not loaded & {*_HEAVY, "asyncio", "msgspec", "apsw", "yaml", "typer"}


def test_the_session_manager_loads_neither_server_nor_providers_nor_what_few_sessions_need() -> None:
    loaded = loaded_by("from ai_whisperer import AsyncAgentSessionManager")
    assert not loaded & {*_HEAVY, "typer", "cronsim", "zoneinfo", "h11", "sandlock", "ctypes", "http.client", "email"}
    assert not loaded & {"ai_whisperer.tools.machine", "ai_whisperer.models.detection"}
    layers = {name.split(".")[1] for name in loaded if name.startswith("ai_whisperer.")}
    assert not layers & {"server", "cli", "client", "protocol", "scripting", "examples", "testing"}


def test_the_help_loads_no_command_no_event_loop_and_no_session() -> None:
    loaded = loaded_by(_COMMAND.format(arguments=["--help"]))
    assert not loaded & {*_HEAVY, "asyncio", "apsw", "yaml", "cronsim", "zoneinfo"}
    layers = {name.split(".")[1] for name in loaded if name.startswith("ai_whisperer.")}
    assert not layers & {"runtime", "store", "core", "models", "tools", "templates", "server", "client"}
    assert not any(name.startswith(commands.__name__) for name in loaded)


def test_a_command_loads_neither_session_nor_providers_before_it_has_found_its_server(tmp_path: Path) -> None:
    loaded = loaded_by(_COMMAND.format(arguments=["sessions", "list", "--data", str(tmp_path)]))
    assert "ai_whisperer.cli.commands.sessions" in loaded
    assert not loaded & {*_HEAVY, "apsw", "cronsim", "zoneinfo"}


@pytest.mark.parametrize("module", COMMANDS)
def test_the_catalog_says_of_commands_what_they_say_themselves(module: str) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    import_module(f"{commands.__name__}.{module}").register(app)
    registered = getattr(get_command(app), "commands")  # noqa: B009 - only groups have it
    told = {name: " ".join((each.help or "").partition("\n\n")[0].split()) for name, each in registered.items()}
    assert told == COMMANDS[module]
    assert {name for name, each in registered.items() if hasattr(each, "commands")} == GROUPS & told.keys()


def test_the_list_of_commands_is_the_same_whether_they_are_loaded_or_not() -> None:
    everything = [name for told in COMMANDS.values() for name in told]
    lists = [
        [
            (name, each.get_short_help_str(limit=200))
            for name, each in getattr(get_command(app_for(given)), "commands").items()  # noqa: B009
        ]
        for given in ((), everything)
    ]
    assert lists[0] == lists[1]
    assert sorted(name for name, _ in lists[0]) == sorted(everything)
