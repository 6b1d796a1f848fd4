"""Answers to `mcp.*`."""

from __future__ import annotations

from ai_whisperer.domain.mcp import McpServerStatus
from ai_whisperer.protocol import mcp
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@reads(mcp.LIST_MCP_SERVERS)
def list_mcp_servers(session: AsyncAgentSessionManager, _: mcp.ListMcpServers) -> mcp.McpServerList:
    return mcp.McpServerList(session.list_mcp_servers())


@answers(mcp.START_MCP_SERVER)
async def start_mcp_server(caller: Caller, params: mcp.StartMcpServer) -> McpServerStatus:
    return await (await caller.session(params.session_id)).start_mcp_server(params.name)
