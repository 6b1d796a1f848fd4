"""The command `whisperer`: its commands, its exit codes, and how errors are told.

It ends with 0 if all is well, with 1 after an error, with 2 if it was called wrongly and with 130 after Ctrl-C. A
server that could not leave in time is ended with 3.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from ai_whisperer.cli.calling import shared_options, take_settings, with_signature
from ai_whisperer.cli.catalog import COMMANDS, GROUPS
from ai_whisperer.cli.printable import as_json, one_line
from ai_whisperer.errors import WhispererError
from ai_whisperer.secrets import redacted
from ai_whisperer.version import __version__

ERROR = 1
USAGE = 2
INTERRUPTED = 130

_COMPLETION = "_WHISPERER_COMPLETE"
"""Is set by the shell that asks what a line could be completed with."""


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


_CALLED_FIRST = with_signature(_whisperer, _parameters(), like=_whisperer)


def app_for(given: Collection[str]) -> typer.Typer:
    """The app for these arguments: the modules of the commands that are among them are loaded, of others the names."""
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    app.callback(invoke_without_command=True)(_CALLED_FIRST)
    everything = _COMPLETION in os.environ  # the arguments are somewhere else then
    listed: list[tuple[str, str]] = []
    for module, commands in COMMANDS.items():
        if everything or any(name in given for name in commands):
            import_module(f"ai_whisperer.cli.commands.{module}").register(app)
        else:
            listed += commands.items()
    for name, told in sorted(listed, key=lambda each: each[0] in GROUPS):
        app.command(name, help=told)(_not_loaded)
    return app


def _not_loaded() -> None:
    """Stands for a command that was not called."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app = app_for(given)
        app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
        outcome = get_command(app).main(given, prog_name="whisperer", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return ERROR
    except (WhispererError, typer.TyperException, typer.Abort, OSError, UnicodeError) as error:
        return _fail(given, error)
    return outcome if isinstance(outcome, int) else 0


def _told(error: Exception) -> tuple[int, str, str]:
    """What the command leaves with after the error, its code and its message."""
    match error:
        case WhispererError():
            return ERROR, error.code, error.message
        case typer.TyperException():
            return error.exit_code, "usage", _usage(error)
        case typer.Abort():
            return ERROR, "aborted", "Nothing was done."
        case OSError():
            what = f" ('{error.filename}')" if error.filename else ""
            return ERROR, "system", f"The operating system refused it: {error.strerror or error}{what}."
    return ERROR, "text", f"There is text that cannot be read or written: {error}."


def _usage(error: typer.TyperException) -> str:
    message = error.format_message().replace(": Value error, ", ": ", 1)  # pydantic's words for a wrong choice
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See `{context.command_path} --help`."


def _fail(given: Sequence[str], error: Exception) -> int:
    """Tell an error in one line, in JSON if that is what was asked for."""
    exit_code, code, message = _told(error)
    shown = redacted(one_line(message))
    wants_json = "--json" in given[: given.index("--") if "--" in given else None]
    told = as_json({"error": {"code": code, "message": shown}}) if wants_json else f"whisperer: {shown}"
    with suppress(OSError):
        print(told, file=sys.stderr, flush=True)
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return exit_code


def _open_missing_streams() -> None:
    """Let standard streams that were closed lead nowhere: else the next file that is opened would take their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for ever


def _drop_output() -> None:
    """Let what is still to be written go nowhere, or the interpreter complains about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
