"""`whisperer watch` and `whisperer logs`: what is happening, and what has happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ai_whisperer.cli.calling import Following, command
from ai_whisperer.cli.connecting import AgentName
from ai_whisperer.cli.fleet import FLEET
from ai_whisperer.cli.output import Output, console, rich_table
from ai_whisperer.cli.printable import readable_json
from ai_whisperer.cli.racing import first_of, while_somebody_reads
from ai_whisperer.cli.telling import shown_line
from ai_whisperer.core.agent_log import agents_of
from ai_whisperer.domain.notification import Notification

if TYPE_CHECKING:
    from ai_whisperer.client import Client

_WIDTH = 200
_PAUSE_SECONDS = 0.2
"""So long is waited between two looks at agents that change all the time."""
_LONGEST_PAUSE_SECONDS = 2.0
_LOG_PAGE = 1000


def register(app: typer.Typer) -> None:
    command(app, watch, logs)


async def watch(
    call: Following,
    *,
    once: Annotated[bool, typer.Option("--once", help="Show one table and exit.")] = False,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="NUMBER", help="Begin after this event; 0 is from the start."),
    ] = None,
) -> None:
    """Watch the agents at work: a live table and the last events; Ctrl-C ends it.

    Without a terminal the events are told line by line, with --json each is a line of JSON.
    """
    if once:
        call.output.table(await call.client.list_agents(), FLEET, empty="There are no agents yet.")
        return
    async with call.client.events(after=after, deltas=not call.output.as_json) as notes:
        if call.output.is_terminal and not call.output.as_json:
            await _show_live(call.client, notes)
        else:
            await while_somebody_reads(_tell(call.output, notes))


async def _tell(output: Output, notes: AsyncIterator[Notification]) -> None:
    async for note in notes:
        if output.as_json:
            output.json(note)
        elif (line := shown_line(note, width=_WIDTH)) is not None:
            output.text(line)


async def _show_live(client: Client, notes: AsyncIterator[Notification]) -> None:
    from rich.live import Live

    from ai_whisperer.cli.live_view import LiveView

    changed = asyncio.Event()
    with Live(console=console(), auto_refresh=False) as live:
        view = LiveView(live, lambda statuses, _: rich_table(statuses, FLEET))

        async def listen() -> None:
            async for note in notes:
                changed.set()
                view.tell(note)

        async def look() -> None:
            while True:
                changed.clear()
                await view.look(client)
                await asyncio.sleep(_PAUSE_SECONDS)
                try:
                    async with asyncio.timeout(_LONGEST_PAUSE_SECONDS):
                        await changed.wait()
                except TimeoutError:
                    pass

        await first_of(listen(), look())


async def logs(
    call: Following,
    agent: AgentName,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new entries; Ctrl-C ends it.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Show this many of the latest entries.")] = 50,
    level: Annotated[
        str | None, typer.Option("--level", help="The least that is shown: debug, info, warning or error.")
    ] = None,
) -> None:
    """Show the debug log of an agent; with --json an entry a line."""
    page = await call.client.read_log(agent, limit=lines, level=level)
    for entry in page.entries:
        _show_entry(call.output, entry)
    if follow:
        await while_somebody_reads(_follow(call.output, call.client, agent, page.next, level=level))


async def _follow(output: Output, client: Client, agent: str, position: int, *, level: str | None) -> None:
    """Show what is told of the agent after the position, for ever."""
    agent_id = (await client.get_agent_status(agent)).agent_id
    async with client.events(after=position) as notes:
        async for note in notes:
            while note.seq > position and agent_id in agents_of(note):
                page = await client.read_log(agent_id, after=position, limit=_LOG_PAGE, level=level)
                position = max(page.next, position + 1)
                for entry in page.entries:
                    _show_entry(output, entry)


def _show_entry(output: Output, entry: Mapping[str, Any]) -> None:
    if output.as_json:
        output.json(entry)
        return
    params = entry.get("params") or {}
    told = readable_json({name: value for name, value in params.items() if name != "agentId"}) if params else ""
    head = (str(entry.get(name, "")) for name in ("time", "level", "event"))
    output.text(" ".join([*head, told]).rstrip())
