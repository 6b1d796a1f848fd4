"""`whisperer cluster`: the nodes that share a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.amounts import counted
from ai_whisperer.cli.calling import Connected, command
from ai_whisperer.cli.catalog import COMMANDS
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.ray_cluster import OF_ALL_NODES, choice, down, is_silent, scale, silence, up
from ai_whisperer.core.moments import moment
from ai_whisperer.core.tags import listed
from ai_whisperer.domain.cluster import NodeStatus
from ai_whisperer.errors import StateError

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="The name of the node; `cluster status` has them.")]


def register(app: typer.Typer) -> None:
    below = typer.Typer(no_args_is_help=True)
    command(below, status, drain, move)
    command(below, up, settings=OF_ALL_NODES)
    command(below, scale, down, settings=("store",))
    app.add_typer(below, name="cluster", help=COMMANDS["cluster"]["cluster"])


async def status(call: Connected) -> None:
    """Show the nodes: where each is reached, what it does, and how many sessions it has."""
    found = await call.client.cluster_status()
    call.output.table(found.nodes, NODES, of=found)
    if found.waiting and not call.output.as_json:
        call.output.text(f"{counted(found.waiting, 'session')} {'waits' if found.waiting == 1 else 'wait'} for a node.")
        for needs in found.unmet:
            call.output.text(f"Some need {listed(needs)}, and no node has that which takes sessions.")
    if found.ray is not None and not call.output.as_json:
        call.output.text(choice(found.ray))
        if is_silent(found.ray):
            call.output.text(silence(found.ray))


async def drain(
    call: Connected,
    node: NodeArgument,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Also if no other node takes its sessions: they wait for one.")
    ] = False,
) -> None:
    """Let a node give all its sessions to others, and take no more. Stop it when it has none.

    The steps under way may finish, for the grace of that node. No task counts as one that crashed.
    """
    found = await call.client.drain_node(node, force=force)
    left = next((each.sessions for each in found.nodes if each.name == node), 0)
    call.output.told(
        found, f"The node '{node}' gives away its sessions, {left} now. Look at it: whisperer cluster status"
    )


async def move(
    call: Connected,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of the session.")],
    node: NodeArgument,
) -> None:
    """Let a session go to that node, and wait until it is there. The steps under way may finish before."""
    placed = await call.client.move_session(session, node)
    if placed.node != node:
        raise StateError(
            f"The session '{session}' is {f'still at {placed.node}' if placed.node else 'on its way'}. It goes when "
            "its steps have ended; look again later."
        )
    call.output.told(placed, f"The session '{session}' is at the node '{node}' ({placed.address}).")


NODES: Sequence[Column[NodeStatus]] = (
    Column("NODE", lambda each: f"{each.name} *" if each.is_this else each.name, whole=True),
    Column("STATE", lambda each: each.state if each.serves else "program"),
    Column("SESSIONS", lambda each: f"{each.sessions:,}", right=True),
    Column("LATE", lambda each: f"{each.lag_seconds:.2f} s", right=True),
    Column("BUSY", lambda each: f"{each.busy:.0%}", right=True),
    Column("ADDRESS", lambda each: each.address),
    Column("VERSION", lambda each: each.version),
    Column("SANDBOX", lambda each: each.sandbox),
    Column("TAGS", lambda each: ", ".join(each.tags)),
    Column("SETTINGS", lambda each: "" if each.has_same_settings else "other"),
    Column("SINCE", lambda each: moment(each.started_at)),
)
