"""`whisperer record`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ai_whisperer.cli.amounts import counted
from ai_whisperer.cli.calling import Call, command
from ai_whisperer.cli.connecting import session_names
from ai_whisperer.errors import InvalidInputError


def register(app: typer.Typer) -> None:
    command(app, record, settings=("data", "store", "work", "tools"))


async def record(
    call: Call,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session.", autocompletion=session_names)],
    *,
    file: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The recording, for instance team.wrec.")
    ],
    first: Annotated[
        int, typer.Option("--from", metavar="N", min=1, help="From which entry of its log on it is compared.")
    ] = 1,
    last: Annotated[
        int | None, typer.Option("--to", metavar="N", min=1, help="Up to which entry of its log it is recorded.")
    ] = None,
    scrub: Annotated[
        str | None,
        typer.Option("--scrub", metavar="MODULE:FUNCTION", help="What is given each text, and returns it scrubbed."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write it in place of a file that is there.")] = False,
) -> int:
    """Record a session: a file that whisperer replay plays without models, as a test of its agents.

    It is read from the data folder, or the database; a server may run meanwhile and is not held up. All that came from
    outside is in it: what people did, what models answered, what tools brought. Secrets are redacted. It exits with
    1 if the session cannot be played as it was, and says why.
    """
    from ai_whisperer.cli.recordings import scrub_of, tools_here
    from ai_whisperer.replay.recording import UNPLAYED, session_store, write_recording
    from ai_whisperer.replay.recording import record as take

    if file.exists() and not replace:
        raise InvalidInputError(f"'{file}' is there already. Choose another name, or give --replace.")
    if last is not None and last < first:
        raise InvalidInputError(f"--to {last} is before --from {first}. Give the smaller number to --from.")
    sys.path.insert(0, "")  # where --scrub finds the modules of the project
    scrubbed = None if scrub is None else scrub_of(scrub)
    values = call.settings.values
    async with session_store(values.work or values.data, session, address=values.store) as store:
        recording = await take(
            store, session, first=first, last=last, tools=tools_here(call, strict=True), scrub=scrubbed
        )
    write_recording(recording, file)
    notes = recording.header.notes
    plays = not any(note.startswith(UNPLAYED) for note in notes)
    told = {
        "recording": str(file),
        "session": session,
        "ok": plays,
        "inputs": len(recording.inputs),
        "steps": recording.steps,
        "entries": len(recording.entries),
        "notes": notes,
    }
    inputs, steps = counted(len(recording.inputs), "input"), counted(recording.steps, "step")
    sentence = f"Wrote {file}: {inputs}, {steps}, {len(recording.entries):,} entries of the log."
    call.output.told(told, "\n".join([sentence, *notes, f"Play it: whisperer replay {file}" if plays else ""]).rstrip())
    return 0 if plays else 1
