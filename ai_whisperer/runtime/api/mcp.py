"""The MCP servers of a session, as people are shown them."""

from __future__ import annotations

from ai_whisperer.domain.mcp import McpServerStatus
from ai_whisperer.runtime.api.tasks import SessionWork


class SessionMcp(SessionWork):
    """The part of the session manager that shows MCP servers."""

    def list_mcp_servers(self) -> list[McpServerStatus]:
        return self._session.supplies.mcp.statuses()

    async def start_mcp_server(self, name: str) -> McpServerStatus:
        server = self._session.supplies.mcp.find(name)
        await server.start()
        await self._session.kernel.flushed()
        return server.status()
