"""The methods `mcp.*`: the MCP servers whose tools agents can be granted. The settings say which there are."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.mcp import McpServerStatus
from ai_whisperer.protocol.method import Effect, InSession, Method


class McpServerList(msgspec.Struct, frozen=True):
    """Servers, by name."""

    servers: list[McpServerStatus]


class ListMcpServers(InSession, frozen=True, kw_only=True):
    """The MCP servers of the session, with the tools that they have listed so far."""


class StartMcpServer(InSession, frozen=True, kw_only=True):
    """Start a server now and have it list its tools: otherwise that happens when an agent needs it."""

    name: str


LIST_MCP_SERVERS = Method("mcp.list", ListMcpServers, McpServerList, "list_mcp_servers", Effect.READS)
START_MCP_SERVER = Method("mcp.start", StartMcpServer, McpServerStatus, "start_mcp_server", Effect.REPEATS)
