"""The WebSocket of one client: uvicorn's protocol, with a small buffer and a way to drop who does not read.

Frames of the server are the same bytes for every client, so a notification is framed once and written to all of them.
"""

from __future__ import annotations

import asyncio
from asyncio.transports import BaseTransport, Transport
from collections.abc import MutableMapping
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State

_HIGH_WATER_BYTES = 16 << 10
_EXTENSION = "whisperer.socket"
_LAST_WORD_SECONDS = 5.0


class SlowClientError(Exception):
    """The client does not read what it is sent."""


class ClientSocket(WebSocketsSansIOProtocol):
    """What a connection writes to. `put` never waits; whoever has much to say waits for `drained` first."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        cast(Transport, transport).set_write_buffer_limits(high=_HIGH_WATER_BYTES)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            cast(dict[str, Any], self.scope["extensions"])[_EXTENSION] = self

    @property
    def is_open(self) -> bool:
        return self.conn.state is State.OPEN and not self.disconnected and not self.transport.is_closing()

    def put(self, frames: bytes) -> None:
        """Write text frames that `framed` made; nothing happens if the client is gone."""
        if self.is_open:
            self.transport.write(frames)

    async def drained(self, *, patience_seconds: float) -> None:
        """Wait until the client has taken what was written; raises `SlowClientError` if it does not in that time."""
        if self.writable.is_set():
            return
        try:
            async with asyncio.timeout(patience_seconds):
                await self.writable.wait()
        except TimeoutError as error:
            raise SlowClientError from error

    def drop(self, code: int, reason: str) -> None:
        """Close the connection. The client may still read what it was sent and why; then it is cut off."""
        if not self.is_open:
            return
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.stop_keepalive()
        self.transport.close()
        self.loop.call_later(_LAST_WORD_SECONDS, self.transport.abort)


def framed(payload: bytes) -> bytes:
    """The payload as a text frame from a server."""
    return Frame(Opcode.TEXT, payload).serialize(mask=False)


def socket_of(scope: MutableMapping[str, Any]) -> ClientSocket:
    """The socket that a WebSocket request came on."""
    socket = scope["extensions"][_EXTENSION]
    if not isinstance(socket, ClientSocket):
        raise TypeError("The server was started without its own WebSocket protocol.")
    return socket
