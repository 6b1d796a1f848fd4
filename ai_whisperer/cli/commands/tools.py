"""`whisperer tools`: what agents can be granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.output import Column
from ai_whisperer.domain.tools import Extent, ToolEntry


def register(app: typer.Typer) -> None:
    command(app)(tools)


async def tools(call: Call) -> None:
    """Show the tools that agents can be granted, and the tool files that have a mistake."""
    async with call.server() as client:
        found = await client.list_tools()
    call.output.table(found, TOOLS, empty="There are no tools.")


def _traits(entry: ToolEntry) -> Iterator[str]:
    words = {Extent.ALWAYS: "", Extent.SOMETIMES: " sometimes", Extent.NEVER: None}
    for name, extent in (("idempotent", entry.idempotent), ("asks a person", entry.needs_approval)):
        if (word := words[extent]) is not None:
            yield f"{name}{word}"
    if entry.touches:
        yield f"touches {', '.join(entry.touches)}"
    if entry.untrusted:
        yield "untrusted"


TOOLS: Sequence[Column[ToolEntry]] = (
    Column("TOOL", lambda each: each.name, whole=True),
    Column("KIND", lambda each: each.kind),
    Column("TRAITS", lambda each: "; ".join(_traits(each))),
    Column("DESCRIPTION", lambda each: each.description if each.error is None else f"ERROR: {each.error}"),
    Column("FILE", lambda each: each.source),
)
