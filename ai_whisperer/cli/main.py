"""The command `whisperer`: its commands, its exit codes, and how errors are told.

It ends with 0 if all is well, with 1 after an error, with 2 if it was called wrongly and with 130 after Ctrl-C.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from ai_whisperer import __version__
from ai_whisperer.cli.calling import shared_options, take_settings, with_signature
from ai_whisperer.cli.commands import (
    agents,
    chat,
    config,
    demo,
    doctor,
    mail,
    run,
    schedule,
    serve,
    sessions,
    tasks,
    watch,
)
from ai_whisperer.cli.printable import as_json, one_line
from ai_whisperer.errors import WhispererError
from ai_whisperer.secrets import redacted

ERROR = 1
USAGE = 2
INTERRUPTED = 130


def _show_version(asked: bool) -> None:  # noqa: FBT001 - typer hands the value of the option over
    if asked:
        print(f"whisperer {__version__}")
        raise typer.Exit


def _whisperer(context: typer.Context, *, version: bool, **given: Any) -> None:
    """A durable runtime for many AI agents that work at the same time.

    Start with `whisperer demo`, or with `whisperer serve` in one terminal and the other commands in another.
    """
    del version
    take_settings(context, given)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


def _parameters() -> list[inspect.Parameter]:
    context, version, _ = inspect.signature(_whisperer, eval_str=True).parameters.values()
    option = typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    return [context, version.replace(annotation=Annotated[bool, option], default=False), *shared_options()]


app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
app.callback(invoke_without_command=True)(with_signature(_whisperer, _parameters(), like=_whisperer))
for each in (demo, serve, run, agents, tasks, mail, chat, watch, schedule, sessions, config, doctor):
    each.register(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
    try:
        outcome = get_command(app).main(given, prog_name="whisperer", standalone_mode=False)
        sys.stdout.flush()
    except WhispererError as error:
        return _fail(given, ERROR, code=error.code, message=error.message)
    except typer.TyperException as error:
        return _fail(given, error.exit_code, code="usage", message=_usage(error))
    except typer.Abort:
        return _fail(given, ERROR, code="aborted", message="Nothing was done.")
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it ends
        return ERROR
    return outcome if isinstance(outcome, int) else 0


def _usage(error: typer.TyperException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See `{context.command_path} --help`."


def _fail(given: Sequence[str], exit_code: int, *, code: str, message: str) -> int:
    """Tell an error in one line, in JSON if that is what was asked for."""
    shown = redacted(one_line(message))
    wants_json = "--json" in given[: given.index("--") if "--" in given else None]
    told = as_json({"error": {"code": code, "message": shown}}) if wants_json else f"whisperer: {shown}"
    print(told, file=sys.stderr, flush=True)
    return exit_code
