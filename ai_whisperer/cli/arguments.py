"""Options and arguments that several commands have, and how their values are read."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer

from ai_whisperer.core.moments import seconds_in
from ai_whisperer.core.output_schemas import checked_schema
from ai_whisperer.domain.tasks import Deliver, Priority

_SHORTEST_SECONDS = 0.001


def seconds_of(text: str) -> float:
    """The seconds of a length of time, which is written as a number of them or with units."""
    seconds = seconds_in(text)
    if seconds is None or not math.isfinite(seconds):
        raise typer.BadParameter(f"{text!r} is not a length of time. Write 90 (seconds), 15min, 1h 30min, 2d or 1w.")
    return seconds


def some_time(seconds: float | None) -> float | None:
    """The same seconds, if they are enough for anything to happen in them."""
    if seconds is not None and seconds < _SHORTEST_SECONDS:
        raise typer.BadParameter(f"{seconds:g} seconds are too few. Write {_SHORTEST_SECONDS:g} or more.")
    return seconds


def seconds_option(*names: str, help: str, callback: Callable[[float | None], float | None] | None = None) -> Any:  # noqa: A002
    """An option that takes a length of time."""
    return typer.Option(*names, parser=seconds_of, metavar="TIME", help=help, callback=callback)


def _delivery(given: str) -> str:
    """The same value, if it is one; else an error with the values as the option spells them."""
    choices = [each.replace("_", "-") for each in Deliver]
    if given.replace("_", "-") not in choices:
        raise typer.BadParameter(f"{given!r:.60} is not one of {', '.join(choices)}.")
    return given


PriorityOption = Annotated[
    Priority, typer.Option("--priority", "-p", help="How important it is.", show_choices=True, case_sensitive=False)
]
DeliverOption = Annotated[
    str,
    typer.Option(
        "--deliver",
        metavar="in-turn|next-step",
        callback=_delivery,
        help="When it is heard: in its turn, or before the next step of the task at work.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most this many.")]
TimeoutOption = Annotated[
    float | None,
    seconds_option("--timeout", help="For the task and everything that it causes.", callback=some_time),
]


def reason_option(words: str) -> Any:
    """The option that says why something is done."""
    return typer.Option("--reason", metavar="TEXT", help=f"Why; {words}.")


def once_option(done: str) -> Any:
    """The option that names what is made, so that it is made once however often it is asked for."""
    return typer.Option("--id", metavar="ID", help=f"Repeated with the same id, it is {done} once.")


ReasonOption = Annotated[str, reason_option("it is kept and shown")]


def json_of(text: str | None, *, option: str) -> Any:
    """The value of an option that takes JSON; None if it was not given."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"{option} takes JSON, and this is not valid JSON: {error}.") from error


def object_of(text: str | None, *, option: str) -> dict[str, Any] | None:
    """The value of an option that takes a JSON object."""
    value = json_of(text, option=option)
    if value is None or isinstance(value, dict):
        return value
    raise typer.BadParameter(f'{option} takes a JSON object, such as \'{{"description": "Writes reports"}}\'.')


SchemaOption = Annotated[
    Path | None,
    typer.Option(
        "--output-schema",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="A JSON Schema that the answer has to fit; the answer is the JSON then.",
    ),
]


AttachOption = Annotated[
    list[Path] | None,
    typer.Option("--attach", metavar="FILE", help="An image or a file that goes along; several may be given."),
]


def schema_in(file: Path | None) -> Any:
    """The schema in the file that was named; what stands there is looked at where it is sent."""
    if file is None:
        return None
    try:
        schema = json_of(file.read_text(encoding="utf-8"), option="--output-schema")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"--output-schema: '{file}' cannot be read: {error}.") from error
    return checked_schema(schema)


def _text_of(context: typer.Context, given: str | None) -> str | None:
    """The text that was given, or what stands in the standard input if it is `-`.

    It is read while the line is, before the command runs: whoever waits for a person can be interrupted there.
    """
    if given != "-" or context.resilient_parsing:
        return given
    try:
        stream: TextIO = sys.stdin
        return stream.buffer.read().decode() if isinstance(stream, io.TextIOWrapper) else stream.read()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(
            f"The standard input is not UTF-8 text: {error.reason}, at byte {error.start}."
        ) from error


def text_argument(metavar: str, words: str) -> Any:
    """An argument that takes text, or `-` for the standard input."""
    return typer.Argument(metavar=metavar, help=f"{words}; `-` reads it from the standard input.", callback=_text_of)
