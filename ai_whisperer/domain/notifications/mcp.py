"""Notifications about MCP servers and their tools."""

from __future__ import annotations

from ai_whisperer.domain.notifications.agents import ToolsMissing
from ai_whisperer.domain.notifications.base import Told, notification


class McpServerTold(Told, frozen=True, kw_only=True):
    who = "The MCP server {name}"

    name: str


@notification("mcp.server_started", "was started", watched=False)
class McpServerStarted(McpServerTold, frozen=True, kw_only=True):
    """An MCP server was started, or connected to."""


@notification("mcp.server_failed", "failed[: {error}]", watched=False)
class McpServerFailed(McpServerTold, frozen=True, kw_only=True):
    """An MCP server could not be started, or died; it is started again when it is needed."""

    error: str
    will_retry_at: float


@notification("mcp.server_stopped", "was stopped", watched=False)
class McpServerStopped(McpServerTold, frozen=True, kw_only=True):
    """An MCP server was stopped with its session."""


@notification("mcp.tools_listed", "has [the tools {tools}|no tools][: {problems}]", watched=False)
class McpToolsListed(McpServerTold, frozen=True, kw_only=True):
    """An MCP server listed which tools it has; `problems` says which were left out, and why."""

    tools: list[str]
    problems: list[str]


@notification("mcp.tools_missing", "lacks tools of MCP servers: {tools}", watched=False)
class McpToolsMissing(ToolsMissing, frozen=True, kw_only=True):
    """An agent is granted tools that their MCP servers do not have."""
