"""One WebSocket and the requests on it: which answer belongs to which."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from ai_whisperer.client.dialing import UnreachableError, in_time, not_understood
from ai_whisperer.client.route import Route
from ai_whisperer.errors import ClosedError, TooLargeError, WhispererError
from ai_whisperer.protocol.errors import from_rpc
from ai_whisperer.protocol.jsonrpc import request_frame
from ai_whisperer.protocol.sessions import GET_SERVER_INFO

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)
"""What reading raises if the other side does not speak as this one does."""


class LinkBrokenError(Exception):
    """The WebSocket broke before the answer came. The request may have taken effect if it `was_sent`."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class RpcFailure(msgspec.Struct, frozen=True):
    """The error of an answer."""

    code: int
    message: str
    data: Any = None


class Incoming(msgspec.Struct, frozen=True):
    """What a server sends: the answer to a request, or a notification."""

    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    id: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: RpcFailure | None = None


read_incoming = msgspec.json.Decoder(Incoming).decode


async def handed_on(socket: ClientConnection, take: Callable[[bytes], None], *, sender: str) -> str:
    """Hand on each message that comes, until there are no more; returns why. One that cannot be read is the last."""
    try:
        while True:
            take(await socket.recv(decode=False))
    except ConnectionClosed as closed:
        return str(closed)
    except (msgspec.MsgspecError, ValueError) as error:
        socket.transport.abort()
        return f"{sender} sent what cannot be read: {error}"


def check_answer(incoming: Incoming) -> None:
    """Raise the error that the server answered with, as the runtime would raise it."""
    if incoming.error is not None:
        raise from_rpc(incoming.error.code, incoming.error.message, incoming.error.data)


class Link:
    """Carries requests until it breaks. It is not mended: a new one takes its place."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)
        self._pending: dict[int, asyncio.Future[bytes]] = {}
        self._max_frame_bytes: int | None = None
        self._why = ""
        self._reading = self._loop.create_task(self._read(), name="answers of the server")

    @classmethod
    async def open(cls, route: Route) -> Link:
        """A link to a server that has shown itself to be one; raises what `dial` does, or `LinkBrokenError`."""
        server, socket = await route.dial()
        link = cls(socket)
        try:
            async with in_time():
                info = GET_SERVER_INFO.read_result(await link.request(GET_SERVER_INFO.name, b"{}"))
        except BaseException as error:
            if isinstance(error, (UnreachableError, LinkBrokenError, ClosedError)):
                route.pass_over(server)
            await link.close()
            if isinstance(error, UNREADABLE):
                raise not_understood(server.url, error) from error
            raise
        link._max_frame_bytes = info.max_frame_bytes
        return link

    @property
    def is_open(self) -> bool:
        return self._socket.state is State.OPEN and not self._reading.done()

    async def request(self, method: str, params: bytes) -> bytes:
        """The result as JSON; raises the error that the server answered with, or `LinkBrokenError`."""
        number = next(self._numbers)
        frame = request_frame(number, method, params)
        if self._max_frame_bytes is not None and len(frame) > self._max_frame_bytes:
            raise TooLargeError(
                f"The request has {len(frame):,} bytes, the server takes at most {self._max_frame_bytes:,}; nothing "
                "was changed. Shorten it or send it in parts."
            )
        if not self.is_open:
            raise LinkBrokenError(self._why, was_sent=False)
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._pending[number] = answer
        try:
            await self._socket.send(frame, text=True)
            return await answer
        except ConnectionClosed as closed:
            raise LinkBrokenError(str(closed), was_sent=True) from closed
        finally:
            self._pending.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # it was looked at, even if the sending failed first

    async def close(self) -> None:
        """Say goodbye. Requests that were not answered end with `LinkBrokenError`."""
        await self._socket.close()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self._why = await handed_on(self._socket, self._take, sender="the server")
        finally:
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(LinkBrokenError(self._why, was_sent=True))

    def _take(self, frame: bytes) -> None:
        incoming = read_incoming(frame)
        if incoming.method is not None:
            return
        if incoming.id is None:
            raise msgspec.DecodeError("an answer to no request")
        answer = self._pending.get(incoming.id)
        if answer is None or answer.done():
            return  # whoever asked has gone
        try:
            check_answer(incoming)
        except WhispererError as error:
            answer.set_exception(error)
        else:
            answer.set_result(bytes(incoming.result))
