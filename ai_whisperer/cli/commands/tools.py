"""`whisperer tools`, `mcp` and `resources`: what agents can be granted, whose it is, and what it touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from ai_whisperer.cli.calling import Connected, command, group
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.mcp import McpServerStatus, McpToolStatus
from ai_whisperer.domain.tools import Extent, ToolEntry
from ai_whisperer.domain.waits import ResourceStatus, ResourceUse

ServerName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the server in the setting mcp.")]


def register(app: typer.Typer) -> None:
    command(app, resources, tools)
    group(app, "mcp", list_servers, start, help="Show the MCP servers; start one to see its tools.")


async def tools(call: Connected) -> None:
    """Show the tools that agents can be granted, and the tool files that have a mistake."""
    call.output.table(await call.client.list_tools(), TOOLS, empty="There are no tools.")


def _traits(entry: ToolEntry) -> Iterator[str]:
    words = {Extent.ALWAYS: "", Extent.SOMETIMES: " sometimes", Extent.NEVER: None}
    for name, extent in (("idempotent", entry.idempotent), ("asks a person", entry.needs_approval)):
        if (word := words[extent]) is not None:
            yield f"{name}{word}"
    if entry.touches:
        yield f"touches {', '.join(entry.touches)}"
    if entry.untrusted:
        yield "untrusted"


async def list_servers(call: Connected) -> None:
    """Show the MCP servers. Their tools are known once they were started, which happens when an agent needs them."""
    servers = await call.client.list_mcp_servers()
    call.output.table(servers, SERVERS, empty="There are no MCP servers. Add one to the setting mcp.")


async def start(call: Connected, name: ServerName) -> None:
    """Start a server and show its tools, by the names that they are granted by."""
    server = await call.client.start_mcp_server(name)
    if call.output.as_json:
        call.output.json(server)
        return
    call.output.rows(server.tools, SERVER_TOOLS)
    for problem in server.problems:
        call.output.note(f"Left out: {problem}")


async def resources(call: Connected) -> None:
    """Show the resources that tools touch now: who holds them, and who waits for its turn, in that order."""
    touched = await call.client.list_resources()
    lines = [line for each in touched for line in _lines(each)]
    call.output.table(lines, LINES, empty="No tool touches a resource.", of=touched)


class _Line(NamedTuple):
    resource: str
    role: str
    use: ResourceUse


def _lines(status: ResourceStatus) -> list[_Line]:
    holders = [_Line(status.resource, "holds", use) for use in status.holders]
    return [*holders, *(_Line(status.resource, "waits", use) for use in status.waiting)]


TOOLS: Sequence[Column[ToolEntry]] = (
    Column("TOOL", lambda each: each.name, whole=True),
    Column("KIND", lambda each: each.kind),
    Column("TRAITS", lambda each: "; ".join(_traits(each))),
    Column("DESCRIPTION", lambda each: each.description if each.error is None else f"ERROR: {each.error}"),
    Column("FILE", lambda each: each.source),
)
SERVERS: Sequence[Column[McpServerStatus]] = (
    Column("SERVER", lambda each: each.name, whole=True),
    Column("STATE", lambda each: each.state.replace("_", " ")),
    Column("TOOLS", lambda each: str(len(each.tools)) if each.tools else "", right=True),
    Column("RETRY", lambda each: moment(each.retry_at)),
    Column("RUNS", lambda each: each.target),
    Column("ERROR", lambda each: each.error or "; ".join(each.problems)),
)
SERVER_TOOLS: Sequence[Column[McpToolStatus]] = (
    Column("TOOL", lambda each: each.name, whole=True),
    Column("IT SAYS", lambda each: ", ".join(each.hints)),
    Column("WHAT IT IS FOR", lambda each: each.description.partition("\n")[0]),
)
LINES: Sequence[Column[_Line]] = (
    Column("RESOURCE", lambda each: each.resource, whole=True),
    Column("AGENT", lambda each: each.use.agent_id, whole=True),
    Column("STATE", lambda each: each.role),
    Column("ACCESS", lambda each: each.use.access),
    Column("SINCE", lambda each: moment(each.use.since)),
    Column("TASK", lambda each: each.use.task_id, whole=True),
)
