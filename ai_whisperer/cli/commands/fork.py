"""`whisperer fork`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ai_whisperer.cli.amounts import counted
from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.connecting import session_names
from ai_whisperer.domain.forks import Effects
from ai_whisperer.errors import InvalidInputError


def register(app: typer.Typer) -> None:
    command(app, fork, settings=("data", "store", "work", "tools", "url", "token"))


_PATIENCE_SECONDS = 60.0


async def fork(
    call: Call,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session.", autocompletion=session_names)],
    *,
    at: Annotated[int, typer.Option("--at", metavar="N", min=1, help="After which entry of its log.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="AGENT.FIELD=VALUE", help="A field of an agent; @FILE is what a file says."),
    ] = None,
    effects: Annotated[
        Effects, typer.Option("--effects", help="Whether a person is asked before each call with effects outside.")
    ] = Effects.ASK,
    runs: Annotated[int, typer.Option("--runs", metavar="K", min=1, max=100, help="How many forks are made.")] = 1,
    name: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="The id of the fork; with --runs, how their ids begin.")
    ] = None,
) -> None:
    """Let a session continue from an entry of its log in another one, with other definitions.

    Up to there it is played from what was recorded: nothing is asked or done again. From there on models and tools are
    those of the server that opens the fork. A number in the middle of a step is refused with the nearest that work.
    """
    from ai_whisperer.cli.connecting import known_address
    from ai_whisperer.cli.forking import forked_here

    values = _values(changes or [])
    if known_address(call.settings.values) is None:
        made = await forked_here(call, session, at=at, changes=values, effects=effects, runs=runs, name=name)
        goes_on = "It continues when a server opens it."
    else:
        async with call.server(patience_seconds=_PATIENCE_SECONDS) as client:
            made = await client.fork_session(
                at, session_id=session, changes=values, effects=effects, new_session_id=name, runs=runs
            )
        goes_on = "It has begun to continue."
    told = f"Forked session {session} at {at} as {', '.join(made.session_ids)}. {goes_on}"
    if effects is Effects.RECORDED:
        told += f" {counted(made.recorded_calls, 'recorded call')} of later are at hand."
    call.output.told({"session": session, "at": at, "forks": made.session_ids, "effects": effects}, told)


def _values(changes: list[str]) -> dict[str, Any]:
    """The values by `AGENT.FIELD`; raises `InvalidInputError`."""
    values: dict[str, Any] = {}
    for change in changes:
        place, equals, written = change.partition("=")
        if not equals:
            raise InvalidInputError(
                f"--set {change!r:.100} is not AGENT.FIELD=VALUE, for instance writer.prompt=@new.md."
            )
        values[place] = _value(place.rpartition(".")[2], written)
    return values


def _value(field: str, written: str) -> Any:
    import yaml

    if written.startswith("@"):
        try:
            return Path(written[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"--set: the file '{written[1:]}' cannot be read: {error}") from error
    if field in ("prompt", "model", "name", "description"):
        return written
    try:
        return yaml.safe_load(written)
    except yaml.YAMLError as error:
        raise InvalidInputError(f"--set: '{written}' is no value: {error}") from error
