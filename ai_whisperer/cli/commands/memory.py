"""`whisperer memory`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.calling import Connected, command
from ai_whisperer.cli.connecting import CONNECTION, AgentName
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.memory import MemoryFile


def register(app: typer.Typer) -> None:
    command(app, memory, settings=CONNECTION)


async def memory(
    call: Connected,
    agent: AgentName,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A file of the memory: show its text.")] = None,
) -> None:
    """Show the files that an agent keeps for itself, or one of them."""
    if file is None:
        empty = f"{agent} keeps nothing in mind. Agents that are granted the tool memory can."
        call.output.table(await call.client.list_memory(agent), FILES, empty=empty)
        return
    found = await call.client.read_memory(agent, file)
    if call.output.as_json:
        call.output.json(found)
        return
    call.output.text(found.text)
    if found.is_cut:
        call.output.note(f"The file has {found.size:,} bytes; this is the beginning.")


FILES: Sequence[Column[MemoryFile]] = (
    Column("FILE", lambda each: each.path, whole=True),
    Column("BYTES", lambda each: f"{each.size:,}", right=True),
    Column("CHANGED", lambda each: moment(each.changed_at)),
)
