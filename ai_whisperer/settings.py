"""All settings, and where each one comes from: flags over `WHISPERER_*` variables over `whisperer.toml` over defaults.

The server, the command line and the clients read the same definition. A setting `max_batch` is the flag
`--max-batch`, the variable `WHISPERER_MAX_BATCH` and the key `max_batch`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from ai_whisperer.domain.levels import Level
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.errors import McpConfigError, SettingsError
from ai_whisperer.mcp_config import McpServerConfig, mcp_servers_from, secrets_in
from ai_whisperer.secrets import HIDDEN, redacted, remember_secret
from ai_whisperer.setting_values import checked, expected, from_object, from_text, kind_of, reason_in_table

FILE_NAME = "whisperer.toml"
DEFAULT = "default"
LOCAL = "local"
"""The principal of the setting `token`, or of the token that the server makes."""

_PREFIX = "WHISPERER_"
_OTHER_VARIABLES = re.compile(r"WHISPERER_(HOME|(SIMULATION|CRASH|MACHINE|TEST|BENCH)_\w+)")
"""Variables that are no settings: the user's own folder, and the sizes of test runs."""

_Text = Annotated[str, Meta(min_length=1)]
_Token = Annotated[str, Meta(pattern=r"^[!-~]+\Z")]
_Principal = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@\-]{0,99}\Z")]
_FolderName = Annotated[str, Meta(pattern=r"^(?!shared\Z)[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}\Z")]
_Url = Annotated[str, Meta(pattern=r"^(wss?|https?)://[^\s/]\S*\Z")]
_A_TOKEN = "visible ASCII characters without a space"  # noqa: S105


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting with its default and, in one line, what it is for."""

    data: Annotated[Path, Meta(description="Folder that holds the database, the logs and the token.")] = Path(
        ".whisperer"
    )
    host: Annotated[str, Meta(pattern=r"^\S+\Z", description="Address that the server listens on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="Port that the server listens on; 0 takes a free one.")] = (
        8642
    )
    token: Annotated[
        _Token | None,
        Meta(
            description="Token that clients must show; a random one is kept in the data folder if none is set.",
            extra={"secret": True, "expected": _A_TOKEN},
        ),
    ] = None
    tokens: Annotated[
        Mapping[_Principal, _Token],
        Meta(
            description="Tokens by the name of the principal that each stands for.",
            extra={
                "secret": True,
                "expected": f"names with a token each, no name twice; a name has letters, digits, '.', '_', '-' or "
                f"'@', a token {_A_TOKEN} (in a variable: alice=TOKEN,bob=TOKEN)",
            },
        ),
    ] = {}
    tls_certificate: Annotated[Path | None, Meta(description="Certificate file (PEM); goes with tls_key.")] = None
    tls_key: Annotated[Path | None, Meta(description="Private key file (PEM); goes with tls_certificate.")] = None
    allowed_hosts: Annotated[
        tuple[str, ...], Meta(description="Host names that requests may be addressed to, beside the server's own.")
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="Origins of pages that may connect, beside the server's own page.")
    ] = ()
    model: Annotated[
        _Text | None,
        Meta(description="Model of agents that name none; found by the keys in the environment if unset."),
    ] = None
    templates: Annotated[
        tuple[Path, ...], Meta(description="Folders with templates, searched before the standard ones.")
    ] = ()
    create_missing: Annotated[
        bool,
        Meta(
            description="Whether work for an agent that is not there, but is called like a template, creates it, and "
            "whether requests of async.* that begin something create a session that is not there."
        ),
    ] = True
    folders: Annotated[
        Mapping[_FolderName, Path],
        Meta(
            description="Folders that agents can be granted, by name; the data folder and what the server is set up "
            "by are hidden in them.",
            extra={
                "expected": "names with the path of a folder each, no name twice; a name begins with a letter or digit "
                "and has letters, digits, '-', '_' and '.' (in a variable: docs=PATH,code=PATH)"
            },
        ),
    ] = {}
    tools: Annotated[
        tuple[Path, ...], Meta(description="Folders with tool files, beside .whisperer/tools of the current folder.")
    ] = ()
    mcp: Annotated[
        Mapping[str, McpServerConfig],
        Meta(
            description="MCP servers by name, each a table [mcp.NAME] with a command or a url.",
            extra={"expected": "a table for each server, with a command or a url (in a variable: JSON)"},
        ),
    ] = {}
    sandbox: Annotated[
        Literal["auto", "namespaces", "bubblewrap", "sandlock", "landlock", "rlimits"],
        Meta(
            description="What holds the programs that agents run: auto is the strongest of the first three that lets "
            "nothing out here; landlock and rlimits let something out everywhere, and have to be named."
        ),
    ] = "auto"
    user: Annotated[
        _Text | None, Meta(description="User that a server which is started by root becomes before it does anything.")
    ] = None
    limits: Annotated[
        SessionLimits,
        Meta(
            description="Limits of agents and sessions that state none: a table [limits].",
            extra={"expected": "limits by name, a number each (in a variable: max_queue_length=100,max_tokens=5000)"},
        ),
    ] = SessionLimits()
    session: Annotated[
        str, Meta(min_length=1, max_length=200, description="Session that the command line and scripts talk to.")
    ] = "default"
    url: Annotated[
        _Url | None,
        Meta(
            description="Address of the running server that clients connect to.",
            extra={"expected": "an address such as ws://127.0.0.1:8642/ws"},
        ),
    ] = None
    log_level: Annotated[
        Level, Meta(description="The least that is written to the log of the process, and shown of agents' logs.")
    ] = "info"
    agent_log: Annotated[
        Path | None, Meta(description="File that the logs of agents are written to as well, as JSON lines.")
    ] = None
    log_max_bytes: Annotated[int, Meta(ge=1, description="Size at which a log file is put aside.")] = 5_000_000
    log_backups: Annotated[int, Meta(ge=0, le=1_000, description="Log files put aside that are kept, of each log.")] = 3
    max_connections: Annotated[int, Meta(ge=1, description="Connections at the same time.")] = 2_500
    max_wrong_tokens: Annotated[
        int,
        Meta(
            ge=1,
            description="Wrong tokens that one address may show in a minute, and the whole server 20 times as many.",
        ),
    ] = 20
    max_frame_bytes: Annotated[int, Meta(ge=1, description="Size of one message from a client.")] = 8 << 20
    max_frame_depth: Annotated[int, Meta(ge=1, le=500, description="Nesting of one message from a client.")] = 64
    max_batch: Annotated[int, Meta(ge=1, description="Calls in one batch.")] = 100
    max_requests_per_second: Annotated[int, Meta(ge=1, description="Calls each second, of one connection.")] = 20_000
    max_pending_requests: Annotated[int, Meta(ge=1, description="Calls under way, of one connection.")] = 256
    max_subscriptions: Annotated[int, Meta(ge=1, description="Subscriptions of one connection.")] = 100
    slow_client_seconds: Annotated[
        float, Meta(gt=0, le=86_400, description="How long a client may take nothing before it is closed.")
    ] = 20.0
    shutdown_grace_seconds: Annotated[
        float, Meta(ge=0, le=86_400, description="How long steps under way may take to finish when the server ends.")
    ] = 10.0

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={field.shown(getattr(self, field.name))!r}" for field in FIELDS)
        return f"Settings({shown})"


class Field(NamedTuple):
    """One setting of the definition."""

    name: str
    declared: Any
    kind: msgspec.inspect.Type
    description: str
    expected: str
    secret: bool

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return _PREFIX + self.name.upper()

    def shown(self, value: Any) -> Any:
        """The value as data for JSON, with its secrets hidden."""
        if isinstance(value, McpServerConfig):
            hidden = {key: dict.fromkeys(getattr(value, key), HIDDEN) for key in ("env", "headers")}
            plain = msgspec.to_builtins(value, enc_hook=str)
            return {key: self.shown(hidden.get(key, each)) for key, each in plain.items()}
        if isinstance(value, SessionLimits):
            return msgspec.to_builtins(value)
        if isinstance(value, Mapping) and not self.secret:
            return {name: self.shown(each) for name, each in value.items()}
        if isinstance(value, Mapping):
            return dict.fromkeys(value, HIDDEN)
        if isinstance(value, tuple | list):
            return [self.shown(each) for each in value]
        if self.secret and value is not None:
            return HIDDEN
        return redacted(str(value)) if isinstance(value, Path | str) else value


def _fields() -> tuple[Field, ...]:
    described = msgspec.inspect.type_info(Settings)
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    fields: list[Field] = []
    for field in described.fields:  # type: ignore[attr-defined]
        extra = field.type.extra or {}
        kind = kind_of(field.type)
        description = field.type.extra_json_schema["description"]
        wanted = extra.get("expected") or expected(kind)
        fields.append(Field(field.name, types[field.name], kind, description, wanted, extra.get("secret", False)))
    return tuple(fields)


FIELDS = _fields()
"""The settings in the order of the definition."""


class ShownSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting as it is shown to people: `value` is data for JSON, in which secrets are hidden."""

    name: str
    value: Any
    source: str
    description: str


class LoadedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that hold, and for each where it came from; `file` is the one that was read, if there is one."""

    values: Settings
    sources: Mapping[str, str]
    file: Path | None = None

    def shown(self) -> list[ShownSetting]:
        return [
            ShownSetting(
                name=field.name,
                value=field.shown(getattr(self.values, field.name)),
                source=self.sources[field.name],
                description=field.description,
            )
            for field in FIELDS
        ]


class _Given(NamedTuple):
    """A value as it was written: `source` for people who ask where it came from, `place` for those who mend it."""

    value: Any
    read: Callable[[Any, msgspec.inspect.Type], Any]
    source: str
    place: str
    folder: Path
    text: str = ""
    """The file that it stands in."""


def load_settings(
    flags: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path, file: Path | None = None
) -> LoadedSettings:
    """The settings for a process that works in `folder`.

    `flags` are by the names of the settings; None and empty lists are flags that were not given, as an empty variable
    is one that is not set. `file` is read in place of the folder's `whisperer.toml`, and must be there. Relative paths
    are relative to the file that they stand in, else to `folder`. Raises `SettingsError` that names the setting, the
    place of the bad value and what is expected there; names that nobody knows are refused too. The tokens are
    remembered as secrets.
    """
    found, given = _from_file(folder, file)
    given |= _from_environment(environment, folder)
    given |= _from_flags(flags, folder)
    values = {field.name: _value(field, given[field.name]) for field in FIELDS if field.name in given}
    sources = {field.name: given[field.name].source if field.name in given else DEFAULT for field in FIELDS}
    if "data" not in values:
        values["data"] = folder / Settings().data
    settings = Settings(**values)
    _check_together(settings, {name: each.place for name, each in given.items()})
    for secret in _secrets_of(settings):
        remember_secret(secret)
    return LoadedSettings(values=settings, sources=sources, file=found)


def _from_flags(flags: Mapping[str, Any], folder: Path) -> dict[str, _Given]:
    by_name = {field.name: field for field in FIELDS}
    given: dict[str, _Given] = {}
    for name, value in flags.items():
        if name not in by_name:
            raise _unknown(f"The flag --{name.replace('_', '-')}", name, {each.name: each.flag for each in FIELDS})
        if value is not None and not (isinstance(value, list | tuple | Mapping) and not value):
            source = f"flag {by_name[name].flag}"
            read = from_text if isinstance(value, str) else from_object
            given[name] = _Given(value, read, source, source, folder)
    return given


def _from_environment(environment: Mapping[str, str], folder: Path) -> dict[str, _Given]:
    by_variable = {field.variable: field for field in FIELDS}
    given: dict[str, _Given] = {}
    for variable, text in environment.items():
        if not variable.startswith(_PREFIX) or _OTHER_VARIABLES.fullmatch(variable):
            continue
        if variable not in by_variable:
            raise _unknown(f"The environment variable {variable}", variable, {name: name for name in by_variable})
        if text.strip():
            source = f"environment {variable}"
            given[by_variable[variable].name] = _Given(text.strip(), from_text, source, source, folder)
    return given


def _from_file(folder: Path, file: Path | None) -> tuple[Path | None, dict[str, _Given]]:
    path = folder / (file or FILE_NAME)
    name = FILE_NAME if path.parent == folder and path.name == FILE_NAME else str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        table = tomllib.loads(f"{text}\n")  # without a last line end the parser names no line
    except FileNotFoundError:
        if file is None:
            return None, {}
        raise SettingsError(f"There is no settings file '{path}'. Name one that exists, or leave it out.") from None
    except OSError as error:
        raise SettingsError(f"The settings file '{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{name} is not UTF-8 text (at byte {error.start}). Save it as UTF-8.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{name} is not valid TOML: {error}. Correct that line.") from error
    known = {field.name: field.name for field in FIELDS}
    for key in table:
        if key not in known:
            raise _unknown(f"The key '{key}' of {name}{_line(text, key)}", key, known)
    return path, {
        key: _Given(value, from_object, name, f"{name}{_line(text, key)}", path.parent, text)
        for key, value in table.items()
    }


def _line(text: str, key: str) -> str:
    """Where the key stands, as far as can be told without a parser that keeps lines."""
    wanted = re.compile(rf"""\s*(?:\[\s*)?["']?{re.escape(key)}["']?\s*[]=.]""")
    number = next((number for number, line in enumerate(text.splitlines(), 1) if wanted.match(line)), None)
    return "" if number is None else f", line {number}"


def _place_in_table(given: _Given, table: Sequence[str], key: str) -> str:
    line = _line_in_table(given.text, table, key)
    return f"{given.source}{line}" if line else given.place


def _line_in_table(text: str, table: Sequence[str], key: str) -> str:
    """Where a key of a table stands, or the table if it has no such key."""
    path = r"\s*\.".join(rf"""\s*["']?{re.escape(name)}["']?""" for name in table)
    header = re.compile(rf"\s*\[{path}\s*[].]")
    wanted = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[.=]|\s*\[.*\.\s*["']?{re.escape(key)}["']?\s*\]""")
    found: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header.match(line):
            found = number if found is None else found
            if key and wanted.match(line):
                return f", line {number}"
        elif line.lstrip().startswith("["):
            if found is not None:
                break
        elif found is not None and key and wanted.match(line):
            return f", line {number}"
    return "" if found is None else f", line {found}"


def _value(field: Field, given: _Given) -> Any:
    try:
        if field.name == "mcp":
            return mcp_servers_from(given.read(given.value, field.kind), folder=given.folder)
        return checked(given.read(given.value, field.kind), field.declared, folder=given.folder)
    except McpConfigError as error:
        place = _place_in_table(given, ("mcp", error.server), error.field)
        raise SettingsError(f"The setting mcp is wrong ({place}): {error.message}") from None
    except ValueError:
        reason = reason_in_table(given.value, field.kind)
        if reason is not None:
            place = _place_in_table(given, (field.name,), reason[0])
            raise SettingsError(f"The setting {field.name} is wrong ({place}): {reason[1]}") from None
        written = "The value" if field.secret else _excerpt(given.value)
        # Not chained: the complaint of the parser quotes the value, which may be a secret.
        raise SettingsError(
            f"The setting {field.name} is wrong ({given.place}): {written} does not fit, it must be {field.expected}."
        ) from None


def _excerpt(value: Any) -> str:
    text = redacted(repr(str(value) if isinstance(value, Path) else value))
    return text if len(text) <= 100 else f"{text[:100]}…"


def _check_together(settings: Settings, places: Mapping[str, str]) -> None:
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        there, missing = ("tls_certificate", "tls_key") if settings.tls_key is None else ("tls_key", "tls_certificate")
        raise SettingsError(f"The setting {there} ({places[there]}) needs {missing} beside it. Set both or neither.")
    if LOCAL in settings.tokens:
        raise SettingsError(
            f"The setting tokens ({places['tokens']}) has a token for '{LOCAL}', who is whoever has the token of the "
            "setting token. Choose another name, or set token."
        )
    if len(set(settings.tokens.values())) < len(settings.tokens):
        raise SettingsError(
            f"The setting tokens ({places['tokens']}) has a token twice. Give each principal a token of its own."
        )


def _secrets_of(settings: Settings) -> list[str]:
    stated = [value for each in settings.mcp.values() for value in (*each.env.values(), *each.headers.values())]
    return [
        *(secret for value in stated for secret in secrets_in(value)),
        *settings.tokens.values(),
        *([settings.token] if settings.token else []),
    ]


def _unknown(what: str, name: str, known: Mapping[str, str]) -> SettingsError:
    by_letters = {each.lower(): shown for each, shown in known.items()}
    near = difflib.get_close_matches(name.replace("-", "_").lower(), by_letters, n=1)
    hint = f"Did you mean {by_letters[near[0]]}?" if near else f"Known are: {', '.join(known.values())}."
    return SettingsError(f"{what} is not a setting. {hint}")
