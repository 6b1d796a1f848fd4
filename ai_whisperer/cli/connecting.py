"""How commands find the running server, and talk to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ai_whisperer.cli.short_ids import whole_session_id
from ai_whisperer.errors import ConnectionLostError, SettingsError, WhispererError
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import LoadedSettings, Settings

if TYPE_CHECKING:
    from ai_whisperer.client import Client

CONNECTION = ("url", "token", "session", "data")
"""The settings that say which server and which session is meant."""
_COMPLETION_SECONDS = 5.0
"""How long somebody who pressed Tab waits at most; a server that is not there is told at once."""
FOLLOWING_SECONDS = 60.0
"""How long a command that follows what happens waits for a server that has gone away."""


def load(flags: Mapping[str, Any]) -> LoadedSettings:
    """The settings that hold in this process, with these from the command line."""
    try:
        folder = Path.cwd()
    except FileNotFoundError as error:
        raise SettingsError("The current folder has been deleted. Change to another one.") from error
    return load_settings(flags, environment=os.environ, folder=folder)


class ServerAddress(NamedTuple):
    """Where a server is, the token to show there, the certificate to trust there, and whether it leaves by itself."""

    url: str
    token: str | None
    certificate: str | None
    temporary: bool = False


def known_address(settings: Settings) -> ServerAddress | None:
    """The server that is meant: the one of the setting `url`, else the one that runs in the data folder, if one does.

    The certificate of the settings is trusted, since it is what a server with these settings shows.
    """
    from ai_whisperer.server.address import find_address

    certificate = None if settings.tls_certificate is None else str(settings.tls_certificate)
    if settings.url is not None:
        return ServerAddress(settings.url, settings.token, certificate)
    found = find_address(settings.data)
    if found is None:
        return None
    return ServerAddress(found.url, settings.token or found.token, found.certificate, found.temporary)


def server_address(settings: Settings) -> ServerAddress:
    """The same; raises `ConnectionLostError` if there is none."""
    from ai_whisperer.store.folder_lock import FolderLock

    address = known_address(settings)
    if address is None:
        holder = FolderLock.holder(settings.data)
        if holder is not None:
            raise ConnectionLostError(
                f"A program (process {holder}) holds the session in the data folder '{settings.data}' open, and serves "
                "no page and no commands. Open it there with AsyncAgentSessionManager(…, page=True)."
            )
        raise ConnectionLostError(
            f"No server runs in the data folder '{settings.data}'. Start one there with `whisperer serve`, or name "
            "another with --data or --url."
        )
    return address


def client_of(address: ServerAddress, settings: Settings, *, patience_seconds: float = FOLLOWING_SECONDS) -> Client:
    """A client for the session that is meant, not opened yet."""
    from ai_whisperer.client import Client

    return Client(
        address.url,
        address.token,
        session_id=settings.session,
        certificate=address.certificate,
        reconnect_seconds=patience_seconds,
    )


@asynccontextmanager
async def connected(settings: Settings, *, patience_seconds: float) -> AsyncIterator[Client]:
    """A connection to the session that is meant, to a server that may go away for so long."""
    async with client_of(server_address(settings), settings, patience_seconds=patience_seconds) as client:
        if settings.session == Settings().session:
            yield client
        else:
            yield client.session(await whole_session_id(client, settings.session))


Completion = Callable[[typer.Context, str], list[str]]
"""Tells a shell which words begin like this one, as far as the line is written."""


def completion_of(
    ask: Callable[[Client], Awaitable[Iterable[str]]], known: Callable[[], Iterable[str]] = tuple
) -> Completion:
    """The known words and those that the server tells, which are none if it does not answer soon."""

    async def answer(settings: Settings) -> list[str]:
        import asyncio

        import ai_whisperer.client  # noqa: F401  what takes longest on a busy machine is no delay of the server's

        async with asyncio.timeout(_COMPLETION_SECONDS), connected(settings, patience_seconds=0) as client:
            return list(await ask(client))

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        import asyncio

        words = list(known())
        with suppress(WhispererError, OSError, TimeoutError):
            words += asyncio.run(answer(load(_flags_of(context)).values))
        return sorted({word for word in words if word.startswith(incomplete)})

    return complete


def _flags_of(context: typer.Context) -> dict[str, Any]:
    """What was given so far, as far as it can be told while the line is still being written."""
    above = {} if context.parent is None else _flags_of(context.parent)  # type: ignore[arg-type]
    here = {name: value for name, value in context.params.items() if name in CONNECTION and isinstance(value, str)}
    return above | here


async def _agents(client: Client) -> Iterable[str]:
    return [status.agent_id for status in await client.list_agents()]


async def _templates(client: Client) -> Iterable[str]:
    return [entry.name for entry in await client.list_templates() if entry.error is None]


async def _sessions(client: Client) -> Iterable[str]:
    return [session.id for session in await client.list_sessions()]


async def _templates_and_agents(client: Client) -> Iterable[str]:
    return [*await _templates(client), *await _agents(client)]


def _workflows() -> Iterable[str]:
    from ai_whisperer.examples.workflows import WORKFLOWS

    return WORKFLOWS


agent_names = completion_of(_agents)
template_names = completion_of(_templates)
session_names = completion_of(_sessions)
names_to_run = completion_of(_templates_and_agents, _workflows)

AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", help="Its id, its name or an alias.", autocompletion=agent_names)
]
"""The argument that names an agent."""

AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", metavar="AGENT", help="Only those of this agent.", autocompletion=agent_names),
]
"""The option that names one."""
