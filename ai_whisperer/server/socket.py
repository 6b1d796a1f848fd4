"""The WebSocket of one client: uvicorn's protocol, with a small buffer and a way to drop who does not read.

Frames of the server are the same bytes for every client, so a notification is framed once and written to all of them.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from asyncio.transports import BaseTransport, Transport
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State

CLOSED_AS_NO_TEXT = 1007
CLOSED_AS_DEAD = 1011
MAX_REASON_BYTES = 123
"""A close frame has no room for more."""

_TEXT, _BYTES = 0x81, 0x82  # a whole message of text, and one of bytes
_SHORT, _MEDIUM, _LONG = struct.Struct(">BB"), struct.Struct(">BBH"), struct.Struct(">BBQ")  # what stands before it
_HIGH_WATER_BYTES = 16 << 10
_EXTENSION = "whisperer.socket"
_LAST_WORD_SECONDS = 5.0
_LAST_SECONDS_OF_THE_SERVER = 1.0

_log = logging.getLogger(__name__)
_log.setLevel(logging.WARNING)  # below that, uvicorn and websockets write down addresses with tokens, and frames


class SlowClientError(Exception):
    """The client does not read what it is sent."""


class ClientSocket(WebSocketsSansIOProtocol):
    """What a connection reads from and writes to.

    `put` never waits; whoever has much to say waits for `drained` first.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.logger = self.conn.logger = _log
        self.conn.debug = False
        self._take_frame = self.conn.recv_frame
        self.conn.recv_frame = self._take  # type: ignore[method-assign]
        self._written = 0
        self._pieces = bytearray()
        self._taken_at_ping = 0

    def _take(self, frame: Frame) -> None:
        """Take a frame. The client may leave in the middle of a message, which then has no end (RFC 6455, 5.4).

        The library takes that for a mistake.
        """
        if frame.opcode is Opcode.CLOSE:
            self.conn.current_size = None
        self._take_frame(frame)

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        cast(Transport, transport).set_write_buffer_limits(high=_HIGH_WATER_BYTES)

    async def arrivals(self) -> AsyncIterator[list[str | bytes]]:
        """The messages of the client, as many at a time as are there, until it has gone.

        The next are read from the network when these have been dealt with.
        """
        while True:
            event: Mapping[str, Any] = await self.queue.get()
            messages: list[str | bytes] = []
            while event["type"] == "websocket.receive":
                messages.append(event["text"] if "text" in event else event["bytes"])
                if self.queue.empty():
                    break
                event = self.queue.get_nowait()
            if messages:
                yield messages
            if event["type"] == "websocket.disconnect":
                return
            if self.read_paused and self.queue.empty():
                self.read_paused = False
                self.transport.resume_reading()

    @property
    def is_open(self) -> bool:
        return self.conn.state is State.OPEN and not self.disconnected and not self.transport.is_closing()

    @property
    def is_drained(self) -> bool:
        """Whether the client has taken what was written, or as good as all of it."""
        return self.writable.is_set()

    def put(self, frames: bytes) -> None:
        """Write text frames that `framed` made; nothing happens if the client is gone."""
        if self.is_open:
            self._written += len(frames)
            self.transport.write(frames)

    async def drained(self, *, patience_seconds: float) -> None:
        """Wait until the client has taken what was written; raises `SlowClientError` if it takes nothing for so long.

        When the client is gone there is nothing to wait for.
        """
        while not self.writable.is_set():
            taken = self._taken()
            try:
                async with asyncio.timeout(patience_seconds):
                    await self.writable.wait()
            except TimeoutError as error:
                if self._taken() <= taken:
                    raise SlowClientError from error

    def drop(self, code: int, reason: str) -> None:
        """Close the connection. The client may still read what it was sent and why; then it is cut off."""
        if not self.is_open:
            return
        self.conn.send_close(code, reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore"))
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self._part()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))  # uvicorn leaves that request without an answer
            self.transport.close()
            self._part()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            cast(dict[str, Any], self.scope["extensions"])[_EXTENSION] = self

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # uvicorn would take a refusal for a fault, and log it

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not _is_text(b"".join(self.frames)):
            self.frames = []
            self.drop(CLOSED_AS_NO_TEXT, "A text frame must be UTF-8.")
        else:
            super().send_receive_event_to_app()

    def handle_cont(self, event: Frame) -> None:
        """Gather the pieces of a message in one, however small they are: a list of them would outgrow the message."""
        self._pieces = self._pieces or bytearray(b"".join(self.frames))
        self._pieces += event.data
        self.frames = []
        if event.fin:
            self.frames, self._pieces = [bytes(self._pieces)], bytearray()
            self.send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer, unless the client does not read its answers."""
        pong = b"".join(self.conn.data_to_send())
        if self.is_drained:
            self.transport.write(pong)

    def handle_close(self, event: Frame) -> None:
        super().handle_close(event)
        self._part()

    def handle_parser_exception(self) -> None:
        """Tell the client what it did wrong. What it sends after that is not looked at."""
        if not self.close_sent and self.conn.close_sent is not None:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.queue.put_nowait({"type": "websocket.disconnect", "code": self.conn.close_sent.code})
            if self.transport.can_write_eof():
                self.transport.write_eof()  # its own close would not be seen any more
            self._part()

    def shutdown(self) -> None:
        super().shutdown()
        self._part(_LAST_SECONDS_OF_THE_SERVER)

    def send_keepalive_ping(self) -> None:
        super().send_keepalive_ping()
        self._taken_at_ping = self._taken()

    def keepalive_timeout(self) -> None:
        """Drop a client that is not there any more.

        One that reads, but has not come to the ping yet, is; so may be one whose answer has not been read here.
        """
        self.stop_keepalive()
        if self.read_paused or self._taken() > self._taken_at_ping:
            self.schedule_ping()
        else:
            self.drop(CLOSED_AS_DEAD, "The client does not answer pings.")

    def _taken(self) -> int:
        """How much of what was written has left this process."""
        return self._written - self.transport.get_write_buffer_size()

    def _part(self, seconds: float = _LAST_WORD_SECONDS) -> None:
        """Let the client have what is on its way to it, and leave the last word to it, but wait no longer than that.

        To close a connection on which the client still sends would take from it what it has not read yet.
        """
        self.stop_keepalive()
        if self.close_timer is None and not self.disconnected:
            self.close_timer = self.loop.call_later(seconds, self._cut_off)
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.writable.set()  # nothing more is written, so nobody need wait

    def _cut_off(self) -> None:
        if not self.disconnected:
            self.transport.abort()


def framed(payload: bytes, opcode: int = _TEXT) -> bytes:
    """The payload as a frame from a server, of text unless it is said otherwise."""
    size = len(payload)
    if size < 126:
        return _SHORT.pack(opcode, size) + payload
    if size < 1 << 16:
        return _MEDIUM.pack(opcode, 126, size) + payload
    return _LONG.pack(opcode, 127, size) + payload


def framed_bytes(payload: bytes) -> bytes:
    """The payload as a frame of bytes from a server."""
    return framed(payload, _BYTES)


def payloads(frames: bytes) -> Iterator[bytes]:
    """What `framed` made frames of, which stand one after the other."""
    start = 0
    while start < len(frames):
        size = frames[start + 1]
        start += _SHORT.size
        for short, layout in ((126, _MEDIUM), (127, _LONG)):
            if size == short:
                size = layout.unpack_from(frames, start - _SHORT.size)[2]
                start += layout.size - _SHORT.size
                break
        yield frames[start : start + size]
        start += size


def socket_of(scope: MutableMapping[str, Any]) -> ClientSocket:
    """The socket that a WebSocket request came on."""
    socket = scope["extensions"][_EXTENSION]
    if not isinstance(socket, ClientSocket):
        raise TypeError("The server was started without its own WebSocket protocol.")
    return socket


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
