"""MCP servers from outside."""

from __future__ import annotations

from ai_whisperer.client.base import ClientBase
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.mcp import McpServerStatus
from ai_whisperer.protocol import mcp


class ClientMcp(ClientBase):
    """The MCP servers of a session."""

    async def list_mcp_servers(self) -> list[McpServerStatus]:
        """The servers that agents can be granted tools of, by name, with the tools that they have listed so far."""
        params = mcp.ListMcpServers(session_id=self._session_id)
        return (await self._ask(mcp.LIST_MCP_SERVERS, params)).servers

    async def start_mcp_server(self, name: str) -> McpServerStatus:
        """Start a server now and have it list its tools: otherwise that happens when an agent needs it.

        One that failed is started without the delay that it had to wait for. Raises `McpError` that says why it cannot
        be started.
        """
        check_text("name", name, max_bytes=200)
        params = mcp.StartMcpServer(session_id=self._session_id, name=name)
        return await self._ask(mcp.START_MCP_SERVER, params)
