"""The MCP servers of a session, and what an agent is granted of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import is_not
from typing import Any

from ai_whisperer.domain.clock import Clock
from ai_whisperer.domain.conversation import ToolResult, ToolSpec
from ai_whisperer.domain.mcp import McpServerStatus
from ai_whisperer.errors import UnknownMcpServerError, UnknownToolError
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.tools.function import Tool, ToolContext, in_thread
from ai_whisperer.tools.mcp.listing import Listing
from ai_whisperer.tools.mcp.names import ALL_TOOLS, exposed_name, server_of, tool_of
from ai_whisperer.tools.mcp.resources import LIST, list_resources, read_resource, resource_result
from ai_whisperer.tools.mcp.results import result_of
from ai_whisperer.tools.mcp.server import McpServer, Tell
from ai_whisperer.tools.parameters import json_object

_MAX_PROGRESS = 1_000


class McpServers:
    """The servers that a session has. None is started before somebody needs it."""

    def __init__(self, configs: Mapping[str, McpServerConfig], *, clock: Clock, tell: Tell) -> None:
        self._servers = {
            name: McpServer(name, config, clock=clock, tell=tell) for name, config in sorted(configs.items())
        }
        self._told: set[tuple[str, str]] = set()

    def __bool__(self) -> bool:
        return bool(self._servers)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def find(self, name: str) -> McpServer:
        """The server of that name; raises `UnknownMcpServerError`."""
        server = self._servers.get(name) if isinstance(name, str) else None
        if server is None:
            names = ", ".join(self._servers) or "none"
            raise UnknownMcpServerError(
                f"There is no MCP server {str(name)[:100]!r}. There are: {names}. Others are added in the setting mcp."
            )
        return server

    def statuses(self) -> list[McpServerStatus]:
        """All servers as they are now, by name."""
        return [server.status() for server in self._servers.values()]

    def granted(self, grants: Iterable[str] | None) -> McpGrants | None:
        """What these grants give of the servers; None if that is nothing."""
        found = [grant for grant in grants or () if server_of(grant) in self._servers]
        return McpGrants(self._servers, found) if found else None

    def untold(self, agent_id: str, unknown: Iterable[str]) -> list[str]:
        """Those of the granted tools that no server has and that were not told about this agent before."""
        news = [tool for tool in unknown if (agent_id, tool) not in self._told]
        self._told.update((agent_id, tool) for tool in news)
        return news

    async def close(self) -> None:
        """Stop all servers; when this returns their processes are gone."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))


class McpGrants:
    """What an agent may use of the servers. Its tools are known once the servers have listed them."""

    def __init__(self, servers: Mapping[str, McpServer], grants: Iterable[str]) -> None:
        self._grants: dict[McpServer, set[str]] = {}
        self._listings: tuple[Listing | None, ...] | None = None
        self._specs: tuple[ToolSpec, ...] = ()
        for grant in grants:
            server = servers.get(server_of(grant) or "")
            if server is not None:
                self._grants.setdefault(server, set()).add(tool_of(grant))

    @property
    def lack_required(self) -> bool:
        """Whether `prepare` may take long: a server that is required has not listed its tools yet."""
        return any(server.config.required and server.listing is None for server in self._grants)

    async def prepare(self) -> None:
        """Have the servers list their tools. Those of a server that cannot do it soon are not there."""
        await asyncio.gather(*(server.refresh() for server in self._grants))

    def covers(self, grant: str) -> bool:
        """Whether one of the servers is meant by this grant."""
        return any(server.name == server_of(grant) for server in self._grants)

    def includes(self, grant: str) -> bool:
        """Whether all that this grant gives is given here: the whole server is, or exactly that tool."""
        allowed = (tools for server, tools in self._grants.items() if server.name == server_of(grant))
        return any(ALL_TOOLS in tools or tool_of(grant) in tools for tools in allowed)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as models are told about them, as far as they are known."""
        listings = tuple(server.listing for server in self._grants)
        if self._listings is None or any(map(is_not, listings, self._listings)):
            self._listings = listings
            self._specs = tuple(
                listed.spec
                for allowed, listing in zip(self._grants.values(), listings, strict=True)
                if listing is not None
                for name, listed in listing.tools.items()
                if _is_granted(allowed, name, listed.remote)
            )
        return self._specs

    def find(self, name: str) -> McpTool | None:
        """The tool of that name, also if its server has not listed it yet: then the call finds out."""
        for server, allowed in self._grants.items():
            if server_of(name) == server.name:
                if server.listing is None:
                    return McpTool(server, name) if _is_granted(allowed, name, tool_of(name)) else None
                listed = server.listing.tools.get(name)
                if listed is not None and _is_granted(allowed, name, listed.remote):
                    return McpTool(server, name, listed.spec)
        return None

    def unknown(self) -> list[str]:
        """The tools that are granted and that their servers, having listed theirs, do not have."""
        return [
            f"mcp__{server.name}__{tool}"
            for server, allowed in self._grants.items()
            if server.listing is not None
            for tool in sorted(allowed - {ALL_TOOLS})
            if not any(_is_granted({tool}, name, listed.remote) for name, listed in server.listing.tools.items())
        ]


def _is_granted(allowed: set[str], name: str, remote: str) -> bool:
    return ALL_TOOLS in allowed or remote in allowed or tool_of(name) in allowed


class McpTool(Tool):
    """A tool of an MCP server. What it returns was written by strangers."""

    __slots__ = ("_server",)

    def __init__(self, server: McpServer, name: str, spec: ToolSpec | None = None) -> None:
        stated = server.config.idempotent
        idempotent = ALL_TOOLS in stated or name in {exposed_name(server.name, each) for each in stated}
        super().__init__(self._call, name=name, idempotent=idempotent, untrusted=True)
        self._server = server
        self._spec = spec

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        """Call the tool at its server, which is started if it does not run; raises a `ToolError`."""
        return await self._call(json_object(arguments), context)

    async def _call(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        listing = await self._server.listed()
        listed = listing.tools.get(self.name)
        if listed is None:
            names = ", ".join(listing.tools) or "none"
            raise UnknownToolError(f"The MCP server '{self._server.name}' has no tool '{self.name}'. It has: {names}.")
        if listed.is_ours:
            return await self._of_resources(listed.remote, arguments, context)
        told = 0

        def on_progress(done: float, total: float | None, message: str | None) -> None:
            nonlocal told
            told += 1
            if told <= _MAX_PROGRESS:
                context.progress(_progress(done, total, message))

        raw = await self._server.call(listed.remote, arguments, on_progress)
        return await self._shown(partial(result_of, self.name), raw, context)

    async def _of_resources(self, does: str, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if does == LIST:
            return await list_resources(self._server.ask, arguments)
        raw = await read_resource(self._server.ask, arguments)
        return await self._shown(resource_result, raw, context)

    async def _shown(self, show: Callable[..., ToolResult], raw: Any, context: ToolContext) -> ToolResult:
        """What came as a model is shown it; binary data goes to disk."""
        from ai_whisperer.tools.mcp.received import keep

        values = {"raw": raw, "keep": partial(keep, context.workplace)}
        result: ToolResult = await in_thread(show, values, context.cancelled)
        return result


def _progress(done: float, total: float | None, message: str | None) -> str:
    amount = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    return f"{amount}: {message[:500]}\n" if message else f"{amount}\n"
