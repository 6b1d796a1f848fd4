"""The WebSocket to another node, and the channels of clients on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import quote

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.protocol import State

from ai_whisperer.client.address import ServerAddress
from ai_whisperer.client.dialing import UnreachableError, dial
from ai_whisperer.client.link import Incoming, LinkBrokenError, handed_on, read_incoming
from ai_whisperer.protocol.jsonrpc import RpcError, request_frame
from ai_whisperer.server.gateway.wire import PATH, TO, Kind, Opening, packed, unpacked
from ai_whisperer.server.socket import payloads

_DIAL_SECONDS = 3.0

OnNote = Callable[[Incoming], None]


class NodeLink:
    """Carries the requests of clients to another node until it breaks. It is not mended: a new one takes its place."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._channels: dict[int, Channel] = {}
        self._why = ""
        self._reading = asyncio.create_task(self._read(), name="answers of another node")

    @classmethod
    async def open(cls, node: str, address: str, secret: str, *, certificate: str | None) -> NodeLink:
        """A link to the node at the address; raises `UnreachableError` or a `WhispererError`."""
        url = f"{address.replace('http', 'ws', 1)}{PATH}"
        there = ServerAddress(url=url, token=secret, certificate=certificate)
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                return cls(await dial(there, f"{TO}={quote(node, safe='')}"))
        except TimeoutError as error:
            raise UnreachableError("it does not answer in time") from error

    @property
    def is_open(self) -> bool:
        return self._socket.state is State.OPEN and not self._reading.done()

    def channel(self, principal: str, *, on_note: OnNote | None = None) -> Channel:
        """A new channel; `on_note` is called with the notifications that come on it."""
        number = next(self._numbers)
        channel = Channel(number, self, on_note)
        self._channels[number] = channel
        self.put(Kind.OPEN, number, msgspec.json.encode(Opening(principal)))
        return channel

    def put(self, kind: Kind, number: int, payload: bytes = b"") -> None:
        """Write a message, without waiting; raises `LinkBrokenError` if that is not possible any more."""
        try:
            self._socket.protocol.send_binary(packed(kind, number, payload))
        except (ConnectionClosed, InvalidState) as error:
            raise LinkBrokenError(self._why or str(error), was_sent=False) from error
        self._socket.send_data()

    def forget(self, number: int) -> None:
        """The channel is over: tell the other node."""
        if self._channels.pop(number, None) is not None:
            with suppress(LinkBrokenError):
                self.put(Kind.CLOSE, number)

    def drop(self) -> None:
        """Break the link at once: the other node is gone."""
        self._socket.transport.abort()

    async def close(self) -> None:
        self.drop()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self._why = await handed_on(self._socket, self._take, sender="the other node")
        finally:
            self.drop()
            channels, self._channels = self._channels, {}
            for channel in channels.values():
                channel.broken(self._why)

    def _take(self, message: bytes) -> None:
        kind, number, payload = unpacked(message)
        channel = self._channels.get(number)
        if channel is None:
            return  # it was closed from here just now
        if kind is Kind.CLOSE:
            del self._channels[number]
            channel.broken("the other node closed the channel")
        else:
            for text in payloads(payload):
                channel.take(read_incoming(text))


class Channel:
    """The requests of one client on a link."""

    def __init__(self, number: int, link: NodeLink, on_note: OnNote | None) -> None:
        self._number = number
        self._link = link
        self._on_note = on_note
        self._requests = count(1)
        self._pending: dict[int, asyncio.Future[bytes]] = {}
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why it is over, when it is."""

    @property
    def is_open(self) -> bool:
        return self._link.is_open and not self.over.done()

    def ask(self, method: str, params: bytes) -> asyncio.Future[bytes]:
        """Send a request; raises `LinkBrokenError` if that is not possible.

        The future has the result as JSON, or `RpcError` if the other node answers with an error, or `LinkBrokenError`.
        """
        if self.over.done():
            raise LinkBrokenError(self.over.result(), was_sent=False)
        number = next(self._requests)
        self._link.put(Kind.DATA, self._number, request_frame(number, method, params or b"{}"))
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        answer.add_done_callback(lambda _: self._pending.pop(number, None))
        return answer

    def take(self, incoming: Incoming) -> None:
        if incoming.method is not None:
            if self._on_note is not None:
                self._on_note(incoming)
            return
        answer = self._pending.get(incoming.id or 0)
        if answer is None or answer.done():
            return  # whoever asked has gone
        if incoming.error is None:
            answer.set_result(bytes(incoming.result))
        else:
            answer.set_exception(RpcError(incoming.error.code, incoming.error.message, _data(incoming.error.data)))

    def broken(self, why: str) -> None:
        if not self.over.done():
            self.over.set_result(why)
        pending, self._pending = self._pending, {}
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(LinkBrokenError(why, was_sent=True))

    def close(self) -> None:
        """Let go: what was asked for and only waits ends at the other node."""
        self._link.forget(self._number)
        self.broken("the channel was closed")


def _data(told: Any) -> dict[str, Any] | None:
    return told if isinstance(told, dict) else None
