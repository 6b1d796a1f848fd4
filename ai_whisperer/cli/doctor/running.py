"""What a session of the server that runs says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from ai_whisperer.client import Client
from ai_whisperer.errors import WhispererError
from ai_whisperer.server.address import Address, find_address

_PATIENCE_SECONDS = 5.0
Entry = TypeVar("Entry")


def asked_of_session(data: Path, session_id: str, ask: Callable[[Client], Awaitable[list[Entry]]]) -> list[Entry]:
    """What the session answers; nothing if no server runs, if it does not answer, or does not have the session.

    That it does not answer is told with its model.
    """
    address = find_address(data)
    if address is None:
        return []
    try:
        return asyncio.run(_asked(address, session_id, ask))
    except (TimeoutError, WhispererError):
        return []


async def _asked(address: Address, session_id: str, ask: Callable[[Client], Awaitable[list[Entry]]]) -> list[Entry]:
    async with (
        asyncio.timeout(_PATIENCE_SECONDS),
        Client(address.url, address.token, certificate=address.certificate, reconnect_seconds=0) as client,
    ):
        known = {each.id for each in await client.list_sessions()}
        return await ask(client.session(session_id)) if session_id in known else []
