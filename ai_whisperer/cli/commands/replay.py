"""`whisperer replay`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ai_whisperer.cli.arguments import seconds_option
from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.connecting import CONNECTION
from ai_whisperer.errors import InvalidInputError

if TYPE_CHECKING:
    from ai_whisperer.replay.place import Place
    from ai_whisperer.replay.playing import Played
    from ai_whisperer.replay.script import Script

_TITLE_CHARACTERS = 100


class Source(StrEnum):
    """Who answers while a recording is played."""

    RECORDED = "recorded"
    LIVE = "live"


class Part(StrEnum):
    """What of requests need not be as it was recorded."""

    SYSTEM = "system"
    TOOLS = "tools"
    SETTINGS = "settings"


def register(app: typer.Typer) -> None:
    command(app, replay, settings=(*CONNECTION, "model", "templates"))


async def replay(
    call: Call,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Conversation scripts, or recordings.")],
    *,
    patience: Annotated[
        float, seconds_option("--patience", help="How long what is expected may take: 90 (seconds), 3s, 2min.")
    ] = 60.0,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the outcome here, as JUnit's XML.")
    ] = None,
    tools: Annotated[
        Source, typer.Option("--tools", help="Of a recording: who answers tool calls, the recording or the tools here.")
    ] = Source.RECORDED,
    models: Annotated[
        Source, typer.Option("--models", help="Of a recording: who answers requests, the recording or the models.")
    ] = Source.RECORDED,
    agents: Annotated[
        Source, typer.Option("--agents", help="Of a recording: which definitions hold, the recorded or the templates.")
    ] = Source.RECORDED,
    ignore: Annotated[
        list[Part] | None, typer.Option("--ignore", help="Of a recording: what of requests is not compared.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Rewrite a recording with what models are asked now.")
    ] = False,
) -> int:
    """Play conversation scripts and recordings of sessions, and say what is not as expected.

    A script has lines to agents and rooms, and what is expected of them.

    Each script has a server of its own, in a temporary folder, which it may kill and start again. With --url or --data
    it is played on the server there, in a new session, unless --session names one. A script is checked as a whole
    before it is played, and ends at the first line that is not as expected. It exits with 0 if all were, else with 1.

    A recording (whisperer record) is played without a server and without models, in a moment. It ends at the first
    thing that an agent does otherwise than recorded.
    """
    from ai_whisperer.cli.racing import first_of
    from ai_whisperer.cli.recordings import Choices, Outcome, are_recordings, play_recordings
    from ai_whisperer.cli.signals import until_asked_to_leave
    from ai_whisperer.replay.junit import cases_of
    from ai_whisperer.replay.junit import junit as as_junit
    from ai_whisperer.replay.script import read_script

    chosen = Choices(
        live_tools=tools is Source.LIVE,
        live_models=models is Source.LIVE,
        live_agents=agents is Source.LIVE,
        ignore=tuple(each.value for each in ignore or ()),
        update=update,
    )
    if are_recordings(files, chosen):
        tried: list[Outcome] = []
        _write(junit, as_junit({}))
        try:
            return await play_recordings(call, list(dict.fromkeys(files)), chosen, tried)
        finally:
            _write(junit, as_junit({each.file: each.cases for each in tried}))
    scripts = [read_script(path) for path in dict.fromkeys(files)]  # a typo in the last costs nothing
    outcomes: dict[str, tuple[Script, list[Played]]] = {script.name: (script, []) for script in scripts}

    def told() -> str:
        return as_junit({name: cases_of(*outcome) for name, outcome in outcomes.items()})

    _write(junit, told())
    try:
        with until_asked_to_leave(call.output, "Stopping: the script is not played to its end.") as leaving:
            asked = await first_of(_play(call, outcomes, patience), leaving.asked())
    finally:
        _write(junit, told())  # what was played was played, whatever became of the next
    code = _told(call, outcomes)
    return code if asked is None else 128 + asked


async def _play(call: Call, outcomes: dict[str, tuple[Script, list[Played]]], patience: float) -> None:
    from ai_whisperer.replay.playing import play

    for script, played in outcomes.values():
        async with _place(call, script) as place:
            async for each in play(script, place, patience_seconds=patience):
                played.append(each)
                if not call.output.as_json:
                    _tell(call, script, each)


def _write(file: Path | None, text: str) -> None:
    """Before anything is played too: then no outcome of another time is left there."""
    if file is None:
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"The outcome cannot be written to {file}: {error.strerror}.") from error


@asynccontextmanager
async def _place(call: Call, script: Script) -> AsyncIterator[Place]:
    from ai_whisperer.replay.place import Given

    if call.is_given("url") or call.is_given("data"):
        Given(None).check(script)
        async with call.server(patience_seconds=60.0) as client:
            if call.is_given("session"):
                yield Given(client)
                return
            session = await client.create_session(title=f"replay {script.name}"[:_TITLE_CHARACTERS])
            if not call.output.as_json:
                call.output.note(f"The session of the script is {session.id}.")
            yield Given(client.session(session.id))
        return
    from ai_whisperer.cli.replaying import OwnServer

    with tempfile.TemporaryDirectory(prefix="whisperer-replay-") as folder:
        async with OwnServer(Path(folder), await _flags(call, script), script) as server:
            yield server


async def _flags(call: Call, script: Script) -> list[str]:
    """What a server of its own is given: the model that was asked for or is found, and the folders with templates."""
    from ai_whisperer.cli.model_choice import check_usable, choose_model, for_workflows

    folders = (folder.resolve() for folder in call.settings.values.templates)  # it works in another folder
    flags = [flag for folder in folders for flag in ("--templates", str(folder))]
    if script.rules is not None and not call.is_given("model"):
        return [*flags, "--model", f"scripted:{script.rules}"]
    choice = await asyncio.to_thread(choose_model, call.settings, os.environ)
    check_usable(choice)
    if not call.output.as_json:
        call.output.note(choice.told("--model"))
    return [*flags, "--model", _from_anywhere(for_workflows(choice))]


def _from_anywhere(model: str) -> str:
    """The model, with the whole path of its rules if it has some: the server works in another folder."""
    kind, _, rules = model.partition(":")
    return f"{kind}:{Path(rules).resolve()}" if kind == "scripted" and Path(rules).is_file() else model


def _tell(call: Call, script: Script, each: Played) -> None:
    where = f"{script.name}, line {each.line.number}"
    if each.failure:
        call.output.text(f"FAILED  {where}: {each.line.written}\n        {each.failure}")
    else:
        call.output.text(f"ok      {each.line.number:>4}  {each.line.written}  ({each.seconds:.1f} s)")


def _told(call: Call, outcomes: dict[str, tuple[Script, list[Played]]]) -> int:
    failed = [
        name
        for name, (script, played) in outcomes.items()
        if len(played) < len(script.lines) or any(each.failure for each in played)
    ]
    if call.output.as_json:
        call.output.json([_record(name, script, played) for name, (script, played) in outcomes.items()])
        return 1 if failed else 0
    for name, (script, played) in outcomes.items():
        seconds = sum(each.seconds for each in played)
        if name in failed:
            call.output.text(f"{name}: not as expected; {len(script.lines) - len(played)} lines were not played.")
        else:
            call.output.text(f"{name}: {len(played)} lines, all as expected, in {seconds:.1f} s.")
    return 1 if failed else 0


def _record(name: str, script: Script, played: list[Played]) -> dict[str, Any]:
    lines = [
        {
            "number": each.line.number,
            "line": each.line.written,
            "seconds": each.seconds,
            "failure": each.failure or None,
        }
        for each in played
    ]
    asked = len(script.lines)
    as_expected = asked == len(played) and not any(each.failure for each in played)
    return {"script": name, "ok": as_expected, "lines": lines, "not_played": asked - len(played)}
