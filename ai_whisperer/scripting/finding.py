"""Which server a script talks to: the one it names, the one that runs, or one of its own."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.client import Client
from ai_whisperer.client.address import read_address
from ai_whisperer.errors import ConnectionLostError, UnknownSessionError
from ai_whisperer.models.detection import detect_model
from ai_whisperer.server.address import find_address
from ai_whisperer.settings import Settings, load_settings


async def open_client(stack: AsyncExitStack, url: str | None, token: str | None, session_id: str | None) -> Client:
    """A client for the script; the stack closes it and the server that was started for it, if one was.

    Without an address the settings have it (`WHISPERER_URL`, `whisperer.toml`); else the server that runs on the data
    folder is used, and if none does, one is started in this process. The session is made if it is not there.
    """
    settings = load_settings({}, environment=os.environ, folder=Path.cwd()).values
    session = session_id or settings.session
    client = await _connected(stack, settings, url or settings.url, token, session)
    try:
        await client.get_session()
    except UnknownSessionError:
        await client.create_session(session)
    return client


async def _connected(
    stack: AsyncExitStack, settings: Settings, url: str | None, token: str | None, session_id: str
) -> Client:
    if url is not None:
        return await stack.enter_async_context(Client(url, token or _token(url, settings), session_id=session_id))
    address = find_address(settings.data)
    if address is not None:
        try:
            return await stack.enter_async_context(
                Client(address.url, address.token, session_id=session_id, certificate=address.certificate)
            )
        except ConnectionLostError:
            pass  # the file was left behind by a server that was killed, and its process number is another's now
    from ai_whisperer.server.serving import running  # only those who serve need what a server is made of

    server = await stack.enter_async_context(running(await _for_a_script(settings), temporary=True))
    return await stack.enter_async_context(Client(server.address.url, server.address.token, session_id=session_id))


async def _for_a_script(settings: Settings) -> Settings:
    """The settings for a server of one's own: on a free port, with the model that `whisperer serve` would use."""
    model = settings.model
    if model is None:
        model = (await asyncio.to_thread(detect_model, os.environ)).model
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
