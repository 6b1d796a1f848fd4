"""Names of tools that MCP servers have: `mcp__SERVER__TOOL`. `mcp__SERVER` and `mcp__SERVER__*` grant all of one."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

PREFIX = "mcp__"
ALL_TOOLS = "*"
_MAX_LENGTH = 64
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


def server_of(name: str) -> str | None:
    """The server that a grant or the name of a tool speaks of; None if it speaks of none."""
    if not name.startswith(PREFIX):
        return None
    return name.removeprefix(PREFIX).partition("__")[0]


def tool_of(name: str) -> str:
    """The part of a grant or of a name that says which tool; `*` if it is all of them."""
    return name.removeprefix(PREFIX).partition("__")[2] or ALL_TOOLS


def exposed_name(server: str, tool: str) -> str:
    """The name by which models call a tool, whatever its server calls it: providers take no other characters."""
    plain = f"{PREFIX}{server}__{_ODD.sub('_', tool)}"
    if len(plain) <= _MAX_LENGTH:
        return plain
    return _marked(plain, tool)


def exposed_names(server: str, tools: Iterable[str]) -> Mapping[str, str]:
    """The tools of a server by the names that models call them. Those that would have one name are told apart.

    It does not matter in which order a server lists them: a name means the same tool after the next listing.
    """
    wanted = [(exposed_name(server, tool), tool) for tool in tools]
    counts = Counter(name for name, _ in wanted)
    return {name if counts[name] == 1 else _marked(name, tool): tool for name, tool in wanted}


def _marked(name: str, tool: str) -> str:
    mark = hashlib.sha256(tool.encode()).hexdigest()[:8]
    return f"{name[: _MAX_LENGTH - len(mark) - 1]}_{mark}"
