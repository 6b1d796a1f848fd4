"""MCP servers as a person writes them down: a command to run, or an address to talk to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.errors import InvalidInputError, McpConfigError
from ai_whisperer.late_pattern import late_pattern
from ai_whisperer.setting_values import checked

_NAME = late_pattern(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")
_MAX_NAME = 30
_HEADER = late_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = late_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_URL = late_pattern(r"https?://[^\s/]\S*")
_MAX_SECONDS = 86_400.0
_OF_COMMANDS = ("args", "env", "cwd")


class McpServerConfig(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """How a server is reached: by `command`, which is run in `cwd`, or by `url`.

    A `${VARIABLE}` in the values of `env` and `headers` stands for that variable of the environment. A command is run
    with `env` and a few variables that every program needs (`PATH`, `HOME` and their like), and no others. A request
    may take `timeout_seconds`. `idempotent` names the tools that may be repeated after a crash, `"*"` all of them.
    Without the tools of a server that is `required` no model is asked for an agent that is granted some.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: Path | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    timeout_seconds: float = 60.0
    idempotent: tuple[str, ...] = ()
    required: bool = False

    @property
    def target(self) -> str:
        """The command or the address, without what may be secret in it."""
        if self.command is not None:
            return self.command
        return re.sub(r"//[^/@]*@", "//", self.url or "").partition("?")[0]

    def variables(self) -> Iterator[str]:
        """The variables of the environment that the server needs."""
        for text in (*self.env.values(), *self.headers.values()):
            yield from _VARIABLE.findall(text)


McpServersConfig = Mapping[str, McpServerConfig | Mapping[str, Any]]
"""Servers by name, each as a record or as the fields of one."""


def mcp_servers_from(given: Any, *, folder: Path) -> dict[str, McpServerConfig]:
    """The servers that are described; relative paths are under `folder`. Raises `McpConfigError`."""
    if not isinstance(given, Mapping):
        raise McpConfigError("MCP servers are given by name: each is a table with a command or a url.")
    return {name: _server_from(name, table, folder) for name, table in given.items()}


def filled(text: str, environment: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text with the variables in it filled in, and their values. Raises `InvalidInputError` if one is not set."""
    values: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        value = environment.get(match[1])
        if not value:
            raise InvalidInputError(f"The environment variable {match[1]} is not set. Set it and start again.")
        values.append(value)
        return value

    return _VARIABLE.sub(value_of, text), values


def secrets_in(value: str) -> tuple[str, ...]:
    """What of a variable or a header is not to be shown: all of it, and what stands behind a word such as Bearer."""
    return (value, value.rpartition(" ")[2])


def _server_from(name: Any, table: Any, folder: Path) -> McpServerConfig:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise McpConfigError(
            f"{str(name)[:100]!r} cannot be the name of an MCP server: use up to {_MAX_NAME} letters and digits, with "
            "single '-' or '_' between them.",
            server=str(name),
        )
    if isinstance(table, McpServerConfig):
        table = msgspec.structs.asdict(table)
    if not isinstance(table, Mapping):
        raise McpConfigError(f"The MCP server '{name}' needs fields: a command or a url.", server=name)
    try:
        config: McpServerConfig = checked(dict(table), McpServerConfig, folder=folder)
    except (msgspec.ValidationError, ValueError) as error:
        reason, _, path = str(error).partition(" - at ")
        field = re.sub(r"[`$.]", "", path).partition("[")[0]
        unknown = re.search(r"unknown field `(.*)`", reason)
        field = unknown[1] if unknown else field
        known = ", ".join(McpServerConfig.__struct_fields__)
        where = f"{field} of the" if field and not unknown else "The"
        raise McpConfigError(
            f"{where} MCP server '{name}' is wrong: {reason}. Its fields are: {known}.", server=name, field=field
        ) from None  # not chained: the parser may quote the value
    for field, problem in _problems(config):
        raise McpConfigError(f"{field} of the MCP server '{name}' is wrong: {problem}", server=name, field=field)
    return config


def _problems(config: McpServerConfig) -> Iterator[tuple[str, str]]:
    if (config.command is None) == (config.url is None):
        yield "command", "a server has either a command that is run, or a url to connect to. State one of them."
    elif config.url is None:
        yield from _command_problems(config)
    else:
        yield from _url_problems(config)
    if not 0 < config.timeout_seconds <= _MAX_SECONDS:
        yield "timeout_seconds", f"it must be more than 0 and up to {_MAX_SECONDS:g} seconds."


def _command_problems(config: McpServerConfig) -> Iterator[tuple[str, str]]:
    if not config.command or "\0" in config.command:
        yield "command", "it must be the name or the path of a program."
    if any("\0" in each for each in config.args):
        yield "args", "an argument cannot hold the character NUL."
    for key, value in config.env.items():
        if not key or "=" in key or "\0" in key or "\0" in value:
            yield "env", f"{key!r} cannot be a variable of the environment."
    if config.headers:
        yield "headers", "only a server with a url has headers."


def _url_problems(config: McpServerConfig) -> Iterator[tuple[str, str]]:
    if not _URL.fullmatch(config.url or ""):
        yield "url", "it must be an address such as http://127.0.0.1:3001/mcp."
    for key, value in config.headers.items():
        if not _HEADER.fullmatch(key) or any(ord(each) < 32 and each != "\t" for each in value):
            yield "headers", f"{key!r} cannot be a header, or its value has a line end."
    for field in _OF_COMMANDS:
        if getattr(config, field):
            yield field, "only a server with a command has it."
