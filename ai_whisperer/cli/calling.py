"""How a command is called: the options that all commands share, and what they are given to work with.

A command is a function whose first parameter is its `Call`; the others are its own options and arguments. One that
takes a `Connected` talks to a server, and is given whole ids for those parameters whose annotation names a kind of id.
Options for settings are made from the one definition of settings, and may stand before the command or after it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import inspect as types

from ai_whisperer.cli.connecting import CONNECTION, FOLLOWING_SECONDS, connected, load, session_names
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.short_ids import whole_id
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.settings import FIELDS, Field, LoadedSettings, Settings

if TYPE_CHECKING:
    from ai_whisperer.client import Client

SERVING = tuple(field.name for field in FIELDS if field.name != "url")
"""The settings of a server."""

ALL = tuple(field.name for field in FIELDS)

_JSON = "json"
_BEFORE = "given before the command"
_FIELDS = {field.name: field for field in FIELDS}
_AS_JSON = Annotated[
    bool, typer.Option("--json", help="Machine-readable output.", show_default=False, rich_help_panel="Settings")
]

Function = Callable[..., Any]


class Call:
    """One call of a command: the settings that hold, and where its answer goes."""

    def __init__(self, settings: LoadedSettings, output: Output) -> None:
        self.settings = settings
        self.output = output

    def is_given(self, name: str) -> bool:
        """Whether the setting was given for this one command, as a flag."""
        return self.settings.sources[name].startswith("flag")

    def server(self, *, patience_seconds: float = 5.0) -> AbstractAsyncContextManager[Client]:
        """A connection to the session that is meant; raises a `WhispererError` that says how to start a server.

        A server that goes away meanwhile is waited for so long: a person who asks for a list wants to hear it soon.
        """
        return connected(self.settings.values, patience_seconds=patience_seconds)


class Serving(Call):
    """The same for a command that runs a server, or may have to: on the event loop that is set for servers."""


class Connected(Call):
    """The same for a command that talks to the session that is meant from its beginning to its end."""

    patience_seconds = 5.0

    def __init__(self, call: Call, client: Client) -> None:
        super().__init__(call.settings, call.output)
        self.client = client


class Following(Connected):
    """The same for a command that follows what happens, and so waits for longer for a server that goes away."""

    patience_seconds = FOLLOWING_SECONDS


def command(
    app: typer.Typer, *functions: Function, name: str | None = None, settings: Sequence[str] = CONNECTION
) -> None:
    """Make the functions commands of the app, with options for these settings beside their own.

    A parameter of its own that is called like a setting takes that option's place. Unless there is a name, a command is
    called like its function, up to the first `_`.
    """
    for function in functions:
        app.command(name or function.__name__.partition("_")[0])(_callable(function, settings))


def group(app: typer.Typer, name: str, listing: Function, *functions: Function, help: str) -> typer.Typer:  # noqa: A002
    """Make `listing` the command `NAME` and `NAME list`, the functions commands below it, and return their group.

    The options of `listing` may stand before `list` or after it.
    """
    below = typer.Typer()
    below.callback(invoke_without_command=True)(_callable(listing, CONNECTION, hand_on=_hand_to_list))
    command(below, listing, *functions)
    app.add_typer(below, name=name, help=help)
    return below


def take_settings(context: typer.Context, given: Mapping[str, Any]) -> None:
    """Keep what was given before a command; what is given after it comes first."""
    context.obj = {**(context.obj or {}), **{name: value for name, value in given.items() if value}}


def shared_options(names: Sequence[str] = CONNECTION) -> Iterator[inspect.Parameter]:
    """The parameters of a function that takes these settings and `--json`."""
    for name in names:
        yield _parameter(name, _option(_FIELDS[name]), default=None)
    yield _parameter(_JSON, _AS_JSON, default=False)


def with_signature(function: Function, parameters: Sequence[inspect.Parameter], like: Function) -> Function:
    """Let typer see these parameters, and what the other function says of itself."""
    function.__name__ = like.__name__
    function.__doc__ = like.__doc__
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function


def _hand_to_list(context: typer.Context, given: Mapping[str, Any]) -> bool:
    """Keep for `list` what was given before it; other commands below the group do not take it."""
    if context.invoked_subcommand is None:
        return False
    own = _written(context, given)
    if own and context.invoked_subcommand != "list":
        options = {each.name: each.opts[0] for each in context.command.params}
        names = ", ".join(options.get(name, name) for name in own)
        raise typer.BadParameter(f"{names} is not for '{context.invoked_subcommand}'. Give its own options after it.")
    context.obj[_BEFORE] = own
    return True


def _written(context: typer.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was written on the line, without what is so by default."""
    sources = {name: context.get_parameter_source(name) for name in given}
    return {name: given[name] for name, source in sources.items() if source is not None and source.name != "DEFAULT"}


def _callable(
    function: Function,
    names: Sequence[str],
    *,
    hand_on: Callable[[typer.Context, Mapping[str, Any]], bool] | None = None,
) -> Function:
    first, *own = inspect.signature(function, eval_str=True).parameters.values()
    frame: type[Call] = first.annotation
    ids = {each.name: kind for each in own for kind in _metadata(each) if isinstance(kind, IdKind)}
    own_names = {each.name for each in own}
    shared = [name for name in names if name not in own_names]

    async def talk(frame: type[Connected], call: Call, given: dict[str, Any]) -> Any:
        async with call.server(patience_seconds=frame.patience_seconds) as client:
            for name, kind in ids.items():
                if given[name] is not None:
                    given[name] = await whole_id(client, kind, given[name])
            return await function(frame(call, client), **given)

    def called(context: typer.Context, **given: Any) -> Any:
        take_settings(context, {name: given.pop(name) for name in (*shared, _JSON)})
        if hand_on is not None and hand_on(context, given):
            return None
        before = context.obj.pop(_BEFORE, {})
        given |= {name: before[name] for name in before.keys() - _written(context, given).keys()}
        flags = {name: value for name, value in context.obj.items() if name in names}
        made = Serving if frame is Serving else Call
        call = made(load(flags), Output(as_json=context.obj.get(_JSON, False)))
        outcome = talk(frame, call, given) if issubclass(frame, Connected) else function(call, **given)
        if not inspect.iscoroutine(outcome):
            return outcome
        if frame is Serving:
            from ai_whisperer.server.event_loop import run

            return run(outcome, call.settings.values.event_loop)
        import asyncio  # it takes as long as all else of `--help`

        return asyncio.run(outcome)

    context = _parameter("context", typer.Context)
    mine = [_parameter(each.name, each.annotation, default=each.default) for each in own]
    return with_signature(called, [context, *mine, *shared_options(shared)], like=function)


def _metadata(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """What its annotation says beside its type."""
    return getattr(parameter.annotation, "__metadata__", ())


def _parameter(name: str, annotation: Any, *, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _option(field: Field) -> Any:
    default = field.shown(getattr(Settings(), field.name))
    several = isinstance(field.kind, types.VarTupleType)
    return Annotated[
        list[str] | None if several else str | None,
        typer.Option(
            field.flag,
            help=field.description if default in (None, [], {}) else f"{field.description} Default: {default}.",
            metavar=_metavar(field.kind),
            show_default=False,
            rich_help_panel="Settings",
            autocompletion=session_names if field.name == "session" else None,
        ),
    ]


def _metavar(kind: types.Type) -> str:
    match kind:
        case types.IntType() | types.FloatType():
            return "NUMBER"
        case types.LiteralType():
            return "|".join(str(value) for value in kind.values)
        case types.CustomType():
            return "PATH"
        case types.VarTupleType(item_type=types.CustomType()):
            return "FOLDER"
        case types.DictType() | types.StructType():
            return "NAME=VALUE,…"
    return "TEXT"
