"""`whisperer mcp`: the MCP servers whose tools agents can be granted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.calling import Call, command, group
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.mcp import McpServerStatus, McpToolStatus

ServerName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the server in the setting mcp.")]


def register(app: typer.Typer) -> None:
    below = group(app, "mcp", help="Show the MCP servers; start one to see its tools.")(list_servers)
    command(below)(start)


async def list_servers(call: Call) -> None:
    """Show the MCP servers. Their tools are known once they were started, which happens when an agent needs them."""
    async with call.server() as client:
        servers = await client.list_mcp_servers()
    call.output.table(servers, SERVERS, empty="There are no MCP servers. Add one to the setting mcp.")


async def start(call: Call, name: ServerName) -> None:
    """Start a server and show its tools, by the names that they are granted by."""
    async with call.server() as client:
        server = await client.start_mcp_server(name)
    if call.output.as_json:
        call.output.json(server)
        return
    call.output.rows(server.tools, TOOLS)
    for problem in server.problems:
        call.output.note(f"Left out: {problem}")


SERVERS: Sequence[Column[McpServerStatus]] = (
    Column("SERVER", lambda each: each.name, whole=True),
    Column("STATE", lambda each: each.state.replace("_", " ")),
    Column("TOOLS", lambda each: str(len(each.tools)) if each.tools else "", right=True),
    Column("RETRY", lambda each: moment(each.retry_at)),
    Column("RUNS", lambda each: each.target),
    Column("ERROR", lambda each: each.error or "; ".join(each.problems)),
)
TOOLS: Sequence[Column[McpToolStatus]] = (
    Column("TOOL", lambda each: each.name, whole=True),
    Column("IT SAYS", lambda each: ", ".join(each.hints)),
    Column("WHAT IT IS FOR", lambda each: each.description.partition("\n")[0]),
)
