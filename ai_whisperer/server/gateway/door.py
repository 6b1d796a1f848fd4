"""The clients of another node, on the one WebSocket that it has to this one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from ai_whisperer.server.gateway.wire import Closing, Kind, opening_in, packed, unpacked
from ai_whisperer.server.outbox import CLOSED_AS_SLOW, Socket
from ai_whisperer.server.socket import ClientSocket, SlowClientError, framed_bytes

_NOT_UNDERSTOOD = 1003

_log = logging.getLogger(__name__)

Serve = Callable[["ChannelSocket", str], Coroutine[Any, Any, None]]
"""Serves a client with this principal until it leaves."""


class ChannelSocket(Socket):
    """One client of the other node, as a connection needs it."""

    def __init__(self, number: int, socket: ClientSocket) -> None:
        self._number = number
        self._socket = socket
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._has_left = False

    async def arrivals(self) -> AsyncIterator[list[str | bytes]]:
        """The messages of the client, as many at a time as are there, until it has gone."""
        while not self._has_left or not self._arrived.empty():
            arrived = [await self._arrived.get()]
            while not self._arrived.empty():
                arrived.append(self._arrived.get_nowait())
            messages: list[str | bytes] = [each for each in arrived if each is not None]
            if messages:
                yield messages

    def take(self, message: bytes) -> None:
        self._arrived.put_nowait(message)

    def leave(self) -> None:
        """The client has gone."""
        self._has_left = True
        self._arrived.put_nowait(None)

    @property
    def is_open(self) -> bool:
        return self._socket.is_open and not self._has_left

    @property
    def is_drained(self) -> bool:
        return self._has_left or self._socket.is_drained

    def put(self, frames: bytes) -> None:
        if self.is_open:
            self._socket.put(framed_bytes(packed(Kind.DATA, self._number, frames)))

    async def drained(self, *, patience_seconds: float) -> None:
        try:
            await self._socket.drained(patience_seconds=patience_seconds)
        except SlowClientError:
            self._socket.drop(CLOSED_AS_SLOW, "Too slow.")  # it is the node that does not read, not the client
            raise

    def drop(self, code: int, reason: str) -> None:
        if self.is_open:
            payload = msgspec.json.encode(Closing(code, reason))
            self._socket.put(framed_bytes(packed(Kind.CLOSE, self._number, payload)))
            self.leave()


class Door:
    """Serves the clients of another node, each by itself, until the node leaves."""

    def __init__(self, socket: ClientSocket, serve: Serve) -> None:
        self._socket = socket
        self._serve = serve
        self._channels: dict[int, ChannelSocket] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def run(self, arrivals: AsyncIterator[Sequence[str | bytes]]) -> None:
        try:
            async for messages in arrivals:
                for message in messages:
                    self._take(message)
        except (ValueError, msgspec.MsgspecError) as error:
            _log.error("another node sent what cannot be read: %s", error)
            self._socket.drop(_NOT_UNDERSTOOD, "This cannot be read.")
        finally:
            for channel in self._channels.values():
                channel.leave()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def _take(self, message: str | bytes) -> None:
        kind, number, payload = unpacked(message.encode() if isinstance(message, str) else message)
        if kind is Kind.OPEN:
            self._open(number, opening_in(payload).principal)
        elif (channel := self._channels.get(number)) is None:
            return  # it was closed from here just now
        elif kind is Kind.DATA:
            channel.take(payload)
        else:
            channel.leave()

    def _open(self, number: int, principal: str) -> None:
        self._channels[number] = channel = ChannelSocket(number, self._socket)
        task = asyncio.create_task(self._serve(channel, principal), name=f"channel {number}")
        self._serving.add(task)
        task.add_done_callback(lambda done: self._ended(number, done))

    def _ended(self, number: int, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        del self._channels[number]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a client of another node could not be served", exc_info=error)
