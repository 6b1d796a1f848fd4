"""Whether the MCP servers of the settings could be started, and how those that run are. None is started."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ai_whisperer.cli.doctor.findings import Finding, ok, problem, warning
from ai_whisperer.cli.doctor.running import asked_of_session
from ai_whisperer.client import Client
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.mcp import McpServerStatus, McpState
from ai_whisperer.mcp_config import McpServerConfig

_CHECK = "MCP"


def check_mcp(servers: Mapping[str, McpServerConfig], environment: Mapping[str, str]) -> Iterator[Finding]:
    """One finding for each server; nothing if there is none."""
    if servers and importlib.util.find_spec("mcp") is None:
        yield problem(_CHECK, "the package mcp is missing", "Install ai-whisperer[mcp].")
    for name, config in servers.items():
        unset = [variable for variable in dict.fromkeys(config.variables()) if not environment.get(variable)]
        path = config.env.get("PATH")
        if config.command is not None and shutil.which(config.command, path=path) is None:
            advice = "Install it, or correct the command in the setting mcp."
            yield problem(_CHECK, f"{name}: there is no program {config.command!r}", advice)
        elif config.cwd is not None and not config.cwd.is_dir():
            yield problem(_CHECK, f"{name}: there is no folder {config.cwd}", "Correct cwd in the setting mcp.")
        elif unset:
            yield problem(_CHECK, f"{name}: not set: {', '.join(unset)}", "Set these variables of the environment.")
        else:
            yield ok(_CHECK, f"{name}: {config.target}")


def check_running_mcp(data: Path, session_id: str) -> Iterator[Finding]:
    """How the servers are in a session of the server that runs; nothing of those that nobody has needed yet."""
    for each in asked_of_session(data, session_id, Client.list_mcp_servers):
        if each.state is not McpState.NOT_STARTED:
            yield _running(each, session_id)


def _running(server: McpServerStatus, session_id: str) -> Finding:
    found = f"{server.name}: {server.state.replace('_', ' ')} in the session '{session_id}'"
    if server.state is McpState.READY:
        return ok(_CHECK, f"{found}, {len(server.tools)} tools")
    again = f"; it is tried again {moment(server.retry_at)}" if server.retry_at is not None else ""
    told = f"{found}{again}: {server.error}" if server.error else f"{found}{again}"
    return warning(_CHECK, told, "Agents work without its tools. `whisperer mcp start` tries it now.")
