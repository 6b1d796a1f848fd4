"""WebSocket clients that do as little as they can, so that what is measured is the server."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from abc import abstractmethod
from array import array
from typing import Any, Self
from urllib.parse import urlsplit

_HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: d2hpc3BlcmVyLWJlbmNoLQ==\r\n\r\n"
)
_NO_MASK = bytes(4)
_NOTIFICATION = re.compile(rb'"seq":(\d+),"cause":"[^"]*","at":([\d.e+]+)')


class RawClient(asyncio.Protocol):
    """The connection itself; what comes in goes to `take` as it came."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.closed = loop.create_future()
        self.upgraded = loop.create_future()
        self._rest = b""

    @classmethod
    async def connect(cls, url: str, *, receive_bytes: int | None = None) -> Self:
        """Shake hands; `receive_bytes` is how much the system keeps for a client that does not read."""
        address = urlsplit(url)
        raw = socket.socket()
        if receive_bytes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setblocking(False)  # noqa: FBT003
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, (address.hostname, address.port))
        _, client = await loop.create_connection(cls, sock=raw)
        path = f"{address.path}?{address.query}"
        client.transport.write(_HANDSHAKE.format(path=path, host=address.netloc).encode())
        await client.upgraded
        return client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        gone = ConnectionResetError(f"The server closed the connection ({exc}).")
        if not self.upgraded.done():
            self.upgraded.set_exception(gone)
        self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.upgraded.done():
            self.take(data)
            return
        head, end, rest = (self._rest + data).partition(b"\r\n\r\n")
        self._rest = rest if end else head
        if end and not head.startswith(b"HTTP/1.1 101"):
            self.upgraded.set_exception(ConnectionRefusedError(head.decode()))
        elif end:
            self.upgraded.set_result(None)

    @abstractmethod
    def take(self, data: bytes) -> None:
        """Take what came after the handshake."""

    def payloads(self, data: bytes) -> list[bytes]:
        """The messages that are whole now."""
        data = self._rest + data
        found, at = [], 0
        while len(data) >= at + 2:
            begin, size = at + 2, data[at + 1]
            if size >= 126:
                begin = at + (4 if size == 126 else 10)
                size = int.from_bytes(data[at + 2 : begin], "big")
            if len(data) < begin + size:
                break
            if data[at] & 0x0F == 1:
                found.append(data[begin : begin + size])
            at = begin + size
        self._rest = data[at:]
        return found


class Caller(RawClient):
    """Calls methods and waits for their results."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def call_all(self, method: str, each: list[dict[str, Any]]) -> list[Any]:
        """Call once with each of these params, all on the way at the same time."""
        return await asyncio.gather(*(self.call(method, **params) for params in each))

    def call(self, method: str, **params: Any) -> asyncio.Future[Any]:
        """Send the call now; the result comes later."""
        self._calls += 1
        self._waiting[self._calls] = answer = asyncio.get_running_loop().create_future()
        self.transport.write(text_frame(request(method, params, request_id=self._calls)))
        return answer

    def take(self, data: bytes) -> None:
        for payload in self.payloads(data):
            answer = json.loads(payload)
            if "id" not in answer:
                continue
            waiting = self._waiting.pop(answer["id"])
            if "error" in answer:
                waiting.set_exception(RuntimeError(answer["error"]["message"]))
            else:
                waiting.set_result(answer["result"])


class Pump(RawClient):
    """Sends the same request again and again, so many on the way at the same time, and counts the answers."""

    async def pump(self, frame: bytes, *, requests: int, on_the_way: int) -> None:
        self._frame = frame
        self._unsent = requests - on_the_way
        self._unanswered = requests
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(frame * on_the_way)
        await self._done

    def take(self, data: bytes) -> None:
        if b'"id":1,"error":' in data:
            self._done.set_exception(RuntimeError(data[:1000].decode(errors="replace")))
            return
        answered = len(self.payloads(data))
        self._unanswered -= answered
        if self._unsent:
            more = min(answered, self._unsent)
            self._unsent -= more
            self.transport.write(self._frame * more)
        elif not self._unanswered:
            self._done.set_result(None)


class Listener(RawClient):
    """Subscribes to a session and checks that it is told everything once, in order.

    It looks only for the fields that it needs, in whatever piece has come: reading every frame would take the machine
    more time than the server takes to send it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seq = 0
        self.gaps = 0
        self._subscribed = asyncio.get_running_loop().create_future()

    async def subscribe(self, session_id: str) -> None:
        self.transport.write(text_frame(request("events.subscribe", {"sessionId": session_id}, request_id=1)))
        self.seq = await self._subscribed

    def take(self, data: bytes) -> None:
        if self._subscribed.done():
            self._rest = self.look_at(self._rest + data)
        else:
            (answer,) = self.payloads(data)
            self._subscribed.set_result(json.loads(answer)["result"]["lastSeq"])

    def look_at(self, data: bytes) -> bytes:
        """Returns what belongs to a notification that is not whole yet."""
        end = data.rfind(b',"cause":')
        if end < 0:
            return data
        seq = int(data[data.rfind(b'"seq":', 0, end) + 6 : end])
        self.gaps += seq - self.seq != data.count(b'"seq":', 0, end)
        self.seq = seq
        return data[end + 1 :]


class TimedListener(Listener):
    """Notes also for each notification how long it was on its way."""

    def __init__(self) -> None:
        super().__init__()
        self.delays = array("d")

    def look_at(self, data: bytes) -> bytes:
        now = time.time()
        end = 0
        for found in _NOTIFICATION.finditer(data):
            seq = int(found[1])
            self.gaps += seq != self.seq + 1
            self.seq = seq
            self.delays.append(now - float(found[2]))
            end = found.end()
        return data[end:]


def request(method: str, params: dict[str, Any], *, request_id: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


def text_frame(payload: bytes) -> bytes:
    """The payload as a client sends it: masked, as it must be, with a mask that changes nothing."""
    size = len(payload)
    if size < 126:
        head = bytes((0x81, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x81, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x81, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + _NO_MASK + payload
