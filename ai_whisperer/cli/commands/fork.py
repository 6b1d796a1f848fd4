"""`whisperer fork`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.connecting import session_names
from ai_whisperer.domain.forks import Effects
from ai_whisperer.errors import InvalidInputError


def register(app: typer.Typer) -> None:
    command(app, fork, settings=("data", "store", "work", "tools", "url"))


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
    from ai_whisperer.cli.commands.moving import imported
    from ai_whisperer.cli.recordings import tools_here
    from ai_whisperer.core.changes import changed_definitions
    from ai_whisperer.replay.recording import record_for_fork, session_store, write_fork

    values = _values(changes or [])
    here = call.settings.values
    async with session_store(here.work or here.data, session, address=here.store) as store:
        recording = await record_for_fork(store, session, at=at, tools=tools_here(call))
    agents = changed_definitions({agent.id: agent.definition for agent in recording.agents}, values)
    made: list[str] = []
    with tempfile.TemporaryDirectory(prefix="whisperer-fork-") as folder:
        for number in range(1, runs + 1):
            file = Path(folder, f"{number}.zip")
            title = f"{session} from {at}"
            await asyncio.to_thread(
                lambda file=file, title=title: write_fork(  # type: ignore[misc]
                    recording, file, agents=agents, effects=effects, title=title
                )
            )
            new_id = name or f"{session}-fork-{at}"
            report = await imported(call, file, new_id=new_id if runs == 1 else f"{new_id}-{number}")
            made.append(report.session_id)
    told = f"Forked session {session} at {at} as {', '.join(made)}. It continues when a server opens it."
    call.output.told({"session": session, "at": at, "forks": made}, told)


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
