"""Opening a WebSocket to a server, and saying in words why that did not work."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus

from ai_whisperer.client.address import ServerAddress
from ai_whisperer.errors import ConnectionLostError, UnauthorizedError
from ai_whisperer.protocol.subscriptions import EXPLICIT, NOTIFICATIONS

_UNAUTHORIZED = 401
_TOO_MANY_GUESSES = 429
_FIRST_TEMPORARY = 500
_GOODBYE_SECONDS = 2.0
_ANSWER_SECONDS = 30.0
"""So long a server may take to show that it is one."""

_log = logging.getLogger("ai_whisperer.client.socket")
_log.setLevel(logging.INFO)  # below that the library writes headers, and with them the token


class UnreachableError(Exception):
    """Nobody answered, for a reason that may go away."""


class ToldToWaitError(UnreachableError):
    """The server does answer: it takes no connection from this address for a moment."""


class _Connect(connect):
    """Goes nowhere but to the address it was given, so that the token does not either."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def dial(address: ServerAddress, query: str = f"{NOTIFICATIONS}={EXPLICIT}") -> ClientConnection:
    """An open WebSocket, to this one server.

    Raises `UnauthorizedError` if the token is not taken, `ConnectionLostError` if the server refuses for another
    reason that stays, and `UnreachableError` if it makes sense to try again.
    """
    try:
        return await _Connect(
            f"{address.url}?{query}",
            additional_headers=address.headers,
            ssl=address.trust,
            compression=None,
            proxy=None,  # what is meant for this machine must not go to a proxy; tunnels are addresses of their own
            close_timeout=_GOODBYE_SECONDS,
            max_size=None,  # the server was asked for what it sends, and has no limit for its answers
            logger=_log,
        )
    except InvalidStatus as refused:
        raise _refusal(address, refused) from None
    except (OSError, EOFError, TimeoutError, InvalidHandshake) as error:
        raise UnreachableError(_in_words(error)) from error


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Within, a server is asked for the first time; raises `UnreachableError` if it keeps silent."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            yield
    except TimeoutError:
        raise UnreachableError("it accepts the connection, but does not answer in time") from None


def not_understood(url: str, error: Exception) -> ConnectionLostError:
    """The server is there, but it is another, or of another version."""
    return ConnectionLostError(
        f"{url} answers in a way that this version does not know ({error}). Use the address of an AI Whisperer "
        "server, and the same version on both sides."
    )


def _refusal(address: ServerAddress, refused: InvalidStatus) -> Exception:
    status = refused.response.status_code
    said = bytes(refused.response.body).decode(errors="replace").strip()[:500]
    if status == _UNAUTHORIZED:
        return UnauthorizedError(said or None)
    if status == _TOO_MANY_GUESSES:
        return ToldToWaitError(said or "it accepts no connections at the moment")
    if status >= _FIRST_TEMPORARY:
        return UnreachableError(said or f"it answers with HTTP status {status}")
    if said:
        return ConnectionLostError(f"{address.url} refuses the connection: {said}")
    return ConnectionLostError(
        f"{address.url} refuses the connection with HTTP status {status}. Use the address that the server printed."
    )


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno).lower()  # asyncio says no more than that the call failed
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"what answers is not an AI Whisperer server ({error})"
