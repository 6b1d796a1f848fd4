"""How commands find the running server, and talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ai_whisperer.cli.calling import flags_of, load
from ai_whisperer.errors import ConnectionLostError, WhispererError
from ai_whisperer.settings import Settings

if TYPE_CHECKING:
    from ai_whisperer.client import Client

_COMPLETION_SECONDS = 1.0
FOLLOWING_SECONDS = 60.0
"""How long a command that follows what happens waits for a server that has gone away."""


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
    address = known_address(settings)
    if address is None:
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
        yield client


def agent_names(context: typer.Context, incomplete: str) -> list[str]:
    """The agents whose ids begin like this, for a shell that completes them; none if no server answers soon."""
    try:
        names = asyncio.run(_agent_names(load(flags_of(context)).values))
    except (WhispererError, OSError, TimeoutError):
        return []
    return [name for name in names if name.startswith(incomplete)]


async def _agent_names(settings: Settings) -> list[str]:
    async with (
        asyncio.timeout(_COMPLETION_SECONDS),
        connected(settings, patience_seconds=_COMPLETION_SECONDS) as client,
    ):
        return [status.agent_id for status in await client.list_agents()]


AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", help="Its id, its name or an alias.", autocompletion=agent_names)
]
"""The argument that names an agent."""

AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", metavar="AGENT", help="Only those of this agent.", autocompletion=agent_names),
]
"""The option that names one."""
