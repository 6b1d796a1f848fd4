"""All settings: what each is for, and which it is if nobody sets it. `setting_sources` reads those that are set.

The server, the command line and the clients read the same definition. A setting `max_batch` is the flag
`--max-batch`, the variable `WHISPERER_MAX_BATCH` and the key `max_batch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from ai_whisperer.domain.clock import LENGTHS_PATTERN
from ai_whisperer.domain.levels import Level
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.nodes import MOST_TAGS, TAG
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.secrets import HIDDEN, redacted
from ai_whisperer.setting_values import expected, kind_of

DEFAULT = "default"
LOCAL = "local"
"""The principal of the setting `token`, or of the token that the server makes."""

PREFIX = "WHISPERER_"
"""How the names of their variables begin."""

_Text = Annotated[str, Meta(min_length=1)]
_Token = Annotated[str, Meta(pattern=r"^[!-~]+\Z")]
_Principal = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@\-]{0,99}\Z")]
_FolderName = Annotated[str, Meta(pattern=r"^(?!(?:shared|own)\Z)[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}\Z")]
_Url = Annotated[str, Meta(pattern=r"^(wss?|https?)://[^\s/]\S*\Z")]
_PageUrl = Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+/?\Z")]
_NodeName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:\-]{0,99}\Z")]
_Tag = Annotated[str, Meta(pattern=TAG)]
_StoreAddress = Annotated[str, Meta(pattern=r"^postgres(ql)?://\S+\Z")]
_Age = Annotated[str, Meta(pattern=rf"(?i)^{LENGTHS_PATTERN}\Z", max_length=20)]
EventLoop = Literal["asyncio", "uvloop"]
_A_TOKEN = "visible ASCII characters without a space"  # noqa: S105


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting with its default and, in one line, what it is for."""

    data: Annotated[Path, Meta(description="Folder that holds the database, the logs and the token.")] = Path(
        ".whisperer"
    )
    store: Annotated[
        _StoreAddress | None,
        Meta(
            description="Address of the PostgreSQL database that keeps the sessions; without it the data folder does.",
            extra={
                "secret": True,
                "expected": "an address such as postgresql://HOST:5432/DATABASE, with USER:PASSWORD@ before the host",
            },
        ),
    ] = None
    store_patience_seconds: Annotated[
        float,
        Meta(gt=0, le=86_400, description="How long a lost PostgreSQL is waited for before the server stops."),
    ] = 30.0
    work: Annotated[
        Path | None,
        Meta(
            description="Folder for the files of agents, which all nodes share; without it each has them in its data "
            "folder. For sessions in PostgreSQL.",
        ),
    ] = None
    node: Annotated[
        _NodeName | None,
        Meta(
            description="Name of this server among those that share the PostgreSQL database; its machine and port if "
            "unset.",
            extra={"expected": "letters, digits, '.', '_', '-' or ':'"},
        ),
    ] = None
    tags: Annotated[
        tuple[_Tag, ...],
        Meta(
            description="Tags of this server among those that share the PostgreSQL database: it takes sessions that "
            "need no others.",
            max_length=MOST_TAGS,
            extra={"expected": "words such as gpu or zone:eu, with letters, digits, '.', '_', '-' or ':'"},
        ),
    ] = ()
    advertise: Annotated[
        _PageUrl | None,
        Meta(
            description="Address at which clients and other nodes reach this server; the one it listens on if unset.",
            extra={"expected": "an address such as http://10.0.0.5:8642, without a user"},
        ),
    ] = None
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
    claude_folder: Annotated[
        _Text | None,
        Meta(
            description="The one of folders that agents of files for Claude Code work in and may write to; without it "
            "they work in folders of their own."
        ),
    ] = None
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
    prune_older_than: Annotated[
        _Age | None,
        Meta(
            description="How long what has ended is kept; what is older is pruned once a day. All is kept if unset.",
            extra={"expected": "an age such as 30d, 12h, 1h 30min or 8w"},
        ),
    ] = None
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
    event_loop: Annotated[
        EventLoop,
        Meta(description="What a server runs on: the event loop of Python, or uvloop, which has to be installed."),
    ] = "asyncio"

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
        return PREFIX + self.name.upper()

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
