"""`whisperer resources`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.waits import ResourceStatus, ResourceUse


def register(app: typer.Typer) -> None:
    command(app)(resources)


async def resources(call: Call) -> None:
    """Show the resources that tools touch now: who holds them, and who waits for its turn, in that order."""
    async with call.server() as client:
        touched = await client.list_resources()
    if call.output.as_json:
        call.output.json(touched)
        return
    call.output.table([line for each in touched for line in _lines(each)], LINES, empty="No tool touches a resource.")


class _Line(NamedTuple):
    resource: str
    role: str
    use: ResourceUse


def _lines(status: ResourceStatus) -> list[_Line]:
    holders = [_Line(status.resource, "holds", use) for use in status.holders]
    return [*holders, *(_Line(status.resource, "waits", use) for use in status.waiting)]


LINES: Sequence[Column[_Line]] = (
    Column("RESOURCE", lambda each: each.resource, whole=True),
    Column("AGENT", lambda each: each.use.agent_id, whole=True),
    Column("STATE", lambda each: each.role),
    Column("ACCESS", lambda each: each.use.access),
    Column("SINCE", lambda each: moment(each.use.since)),
    Column("TASK", lambda each: each.use.task_id, whole=True),
)
