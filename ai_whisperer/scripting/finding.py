"""Which server a script talks to: the one it names, the one that runs, or one of its own."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.client import Client
from ai_whisperer.client.address import read_address
from ai_whisperer.errors import ConnectionLostError, DuplicateIdError, StoreInUseError, UnknownSessionError
from ai_whisperer.models.detection import found_model
from ai_whisperer.models.names import AUTO
from ai_whisperer.server.address import Address, find_address
from ai_whisperer.setting_sources import load_settings
from ai_whisperer.settings import Settings

_STARTING_SECONDS = 15.0
"""So long another program may hold the data folder before its server can be reached, or after it could be."""


async def open_client(stack: AsyncExitStack, url: str | None, token: str | None, session_id: str | None) -> Client:
    """A client for the script; the stack closes it and the server that was started for it, if one was.

    Without an address the settings have it (`WHISPERER_URL`, `whisperer.toml`); else the server that runs on the data
    folder is used, and if none does, one is started in this process. The session is made if it is not there. Scripts
    that begin at the same time share one server: the first starts it, the others find it.

    A server that another script started ends with that script. Then the requests of this one wait for a server on the
    same port for as long as clients do, and raise `ConnectionLostError`; none is started in its place, since work may
    be under way that this script does not know of. Scripts that are to outlive each other need `whisperer serve`.
    """
    settings = load_settings({}, environment=os.environ, folder=Path.cwd()).values
    session = session_id or settings.session
    client = await _connected(stack, settings, url or settings.url, token, session)
    try:
        await client.get_session()
    except UnknownSessionError:
        await _made(client, session)
    return client


async def _made(client: Client, session_id: str) -> None:
    """Make the session, unless another script has done so in the meantime."""
    try:
        await client.create_session(session_id)
    except DuplicateIdError as taken:
        try:
            await client.get_session()
        except UnknownSessionError:
            raise taken from None  # it is somebody else's


async def _connected(
    stack: AsyncExitStack, settings: Settings, url: str | None, token: str | None, session_id: str
) -> Client:
    if url is not None:
        return await stack.enter_async_context(Client(url, token or _token(url, settings), session_id=session_id))
    loop = asyncio.get_running_loop()
    until = loop.time() + _STARTING_SECONDS
    own: Settings | None = None
    while True:
        found = await _found(stack, settings, session_id)
        if found is not None:
            return found
        own = own or await _for_a_script(settings)
        try:
            return await _started(stack, own, session_id)
        except StoreInUseError:  # by a server that is about to begin, or to end
            if loop.time() >= until:
                raise
            await asyncio.sleep(0.1)


async def _found(stack: AsyncExitStack, settings: Settings, session_id: str) -> Client | None:
    """A client of the server that runs on the data folder; None if none does."""
    address = find_address(settings.data)
    if address is None:
        return None
    try:
        return await stack.enter_async_context(_client_of(address, session_id))
    except ConnectionLostError:
        return None  # the file was left behind by a server that was killed, and its process number is another's now


def _client_of(address: Address, session_id: str) -> Client:
    return Client(address.url, address.token, session_id=session_id, certificate=address.certificate)


async def _started(stack: AsyncExitStack, settings: Settings, session_id: str) -> Client:
    """A client of a server in this process."""
    from ai_whisperer.server.serving import running  # only those who serve need what a server is made of

    server = await stack.enter_async_context(running(settings, temporary=True))
    return await stack.enter_async_context(_client_of(server.address, session_id))


async def _for_a_script(settings: Settings) -> Settings:
    """The settings for a server of one's own: on a free port, with the model that `whisperer serve` would use."""
    model = settings.model
    if model in (None, AUTO):
        model = (await asyncio.to_thread(found_model, os.environ)).model
    return replace(settings, port=0, model=model)


def _token(url: str, settings: Settings) -> str | None:
    """The token for an address that was given without one beside it; None if the address has it, or nobody knows."""
    named = read_address(url)
    if named.token is not None:
        return None
    if settings.token is not None:
        return settings.token
    own = find_address(settings.data)
    return own.token if own is not None and read_address(own.url).url == named.url else None
