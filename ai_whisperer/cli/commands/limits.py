"""`whisperer limits`: what agents and sessions may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.calling import Call, Connected, command, group
from ai_whisperer.cli.connecting import AgentOption
from ai_whisperer.cli.output import Column
from ai_whisperer.domain.limits import MAY_BE_ZERO, LimitState

_NONE = "none"


def register(app: typer.Typer) -> None:
    below = group(app, "limits", list_limits, help="Show what agents and the session may use; change it.")
    command(below, list_limits, name="show")
    command(below, set_limits)


async def list_limits(call: Connected, *, agent: AgentOption = None) -> None:
    """Show the limits of the session, or of an agent, and what is used of them now."""
    report = await call.client.get_limits(agent)
    call.output.table(report.limits, LIMITS, of=report)


async def set_limits(
    call: Call,
    limits: Annotated[
        list[str],
        typer.Argument(metavar="NAME=NUMBER …", help="A limit and its number; `NAME=` resets it."),
    ],
    *,
    agent: AgentOption = None,
    server: Annotated[bool, typer.Option("--server", help="Set them for all sessions of the server.")] = False,
) -> None:
    """Change limits of the session, of an agent or of the server; it takes effect at once."""
    if server and agent is not None:
        raise typer.BadParameter("--agent and --server cannot be used together. Choose one.")
    changes = dict(map(_pair, limits))
    async with call.server() as client:
        report = await (client.set_server_limits(changes) if server else client.set_limits(changes, agent_id=agent))
    call.output.table([each for each in report.limits if each.name in changes], LIMITS, of=report)


def numbers_of(written: str | None) -> dict[str, int | float | None] | None:
    """Limits that are written `name=number,name=number`."""
    return None if written is None else dict(_pair(each.strip()) for each in written.split(",") if each.strip())


def _pair(written: str) -> tuple[str, int | float | None]:
    name, equals, number = (each.strip() for each in written.partition("="))
    try:
        value = float(number) if number else None
        if equals:
            return name, int(value) if value is not None and value.is_integer() else value
    except ValueError:
        pass
    raise typer.BadParameter(f"Write a limit as NAME=NUMBER, such as max_queue_length=100, not '{written}'.")


def _value(limit: LimitState) -> str:
    """Where 0 is the default it stands for no limit."""
    return _NONE if not limit.value and limit.name not in MAY_BE_ZERO else _number(limit.value)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4f}".rstrip("0").rstrip(".")


LIMITS: Sequence[Column[LimitState]] = (
    Column("LIMIT", lambda each: each.name, whole=True),
    Column("VALUE", _value, right=True),
    Column("USED", lambda each: _number(each.used), right=True),
    Column("REACHED", lambda each: f"{each.reached:,}" if each.reached else "", right=True),
    Column("FROM", lambda each: each.source),
)
