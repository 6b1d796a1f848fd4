"""Whether the MCP servers of the settings could be started. None is."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Mapping

from ai_whisperer.cli.doctor.findings import Finding, ok, problem
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
