"""MCP servers as they are shown: whether they can be used, and the tools they have."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class McpState(StrEnum):
    """Whether a server can be used: it is started when it is first needed, and again after it failed."""

    NOT_STARTED = "not_started"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


class McpToolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server by the name that it is granted and called by. `hints` is what the server says of it."""

    name: str
    description: str
    hints: tuple[str, ...] = ()


class McpServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A server as it is now. `problems` says which of its tools were left out, and why."""

    name: str
    target: str
    state: McpState
    tools: tuple[McpToolStatus, ...] = ()
    problems: tuple[str, ...] = ()
    error: str | None = None
    retry_at: float | None = None
