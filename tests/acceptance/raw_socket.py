"""A WebSocket client that can do everything wrong: it writes frames byte by byte over a plain socket."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0

Json = Any


class Response(NamedTuple):
    """What the server answered to an HTTP request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class RefusedError(Exception):
    """The server did not open the WebSocket."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"{response.status}: {response.text}")
        self.response = response


class ClosedError(Exception):
    """The server closed the WebSocket, with this code; without a close frame it is None."""

    def __init__(self, code: int | None, reason: str = "") -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


def frame(
    payload: bytes,
    opcode: int = TEXT,
    *,
    first_byte: int | None = None,
    mask: bytes | None = b"\x12\x34\x56\x78",
    length: int | None = None,
) -> bytes:
    """A frame from a client. `first_byte` replaces that of a whole message, `length` what the header says of it."""
    said = len(payload) if length is None else length
    masked = 0x80 if mask is not None else 0
    head = bytes([0x80 | opcode if first_byte is None else first_byte])
    if said < 126:
        head += bytes([masked | said])
    elif said < 1 << 16:
        head += bytes([masked | 126]) + struct.pack("!H", said)
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", said)
    if mask is None:
        return head + payload
    key = int.from_bytes((mask * (len(payload) // 4 + 1))[: len(payload)], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(len(payload), "big")


def request_of(method: str, params: Mapping[str, Any], request_id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


ONLY_WHAT_IS_SUBSCRIBED = "/ws?notifications=explicit"
"""The path for a client that is not to get the notifications of a session because it calls `async.*` in it."""


class RawSocket:
    """An open WebSocket. Raises `RefusedError` if the server does not let it in."""

    def __init__(
        self,
        port: int,
        *,
        token: str | None = None,
        headers: Mapping[str, str | None] | None = None,
        path: str = "/ws",
        timeout: float = 60.0,
        receive_buffer: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.notes: list[Json] = []
        self._calls = 0
        self.socket = connected(port, timeout=timeout, receive_buffer=receive_buffer, tls=tls)
        self._received = b""
        given: dict[str, str | None] = {
            "Host": f"127.0.0.1:{port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
            "Authorization": None if token is None else f"Bearer {token}",
            **(headers or {}),
        }
        try:
            self.socket.sendall(http_head("GET", path, given))
            response = self._read_response()
        except BaseException:
            self.socket.close()
            raise
        if response.status != 101:
            self.socket.close()
            raise RefusedError(response)

    def __enter__(self) -> RawSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def send_json(self, value: Json) -> None:
        self.send(frame(json.dumps(value).encode()))

    def call(self, method: str, **params: Any) -> Json:
        """The result of a request; raises `AssertionError` with the error if there is one."""
        answer = self.answer(method, **params)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def error(self, method: str, **params: Any) -> Json:
        """The error of a request."""
        answer = self.answer(method, **params)
        assert "error" in answer, answer
        return answer["error"]

    def answer(self, method: str, **params: Any) -> Json:
        """The answer to a request; notifications that come before it go to `notes`."""
        self._calls += 1
        request_id = f"call-{self._calls}"
        self.send(frame(request_of(method, params, request_id)))
        return self.answer_to(request_id)

    def answer_to(self, request_id: Any) -> Json:
        while True:
            message = self.receive()
            if isinstance(message, dict) and "method" in message:
                self.notes.append(message)
            elif isinstance(message, dict) and message.get("id") == request_id:
                return message

    def next_note(self) -> Json:
        """The next notification."""
        while not self.notes:
            self.notes.append(self.receive())
        return self.notes.pop(0)

    def notes_until(self, name: str) -> list[Json]:
        """The notifications up to and with the first of that name."""
        found = [self.next_note()]
        while found[-1]["method"] != name:
            found.append(self.next_note())
        return found

    def receive(self) -> Json:
        """The next message; raises `ClosedError` when there is none any more."""
        while True:
            opcode, payload = self.read_frame()
            if opcode == TEXT:
                return json.loads(payload)

    def read_frame(self) -> tuple[int, bytes]:
        """The next frame, whatever it is but a close."""
        first, second = self._read(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._read(8))
        payload = self._read(length)
        assert first & 0xF0 == 0x80, "the server sends whole messages without extensions"
        if first & 0x0F == CLOSE:
            code = int.from_bytes(payload[:2], "big") if payload else 1005
            raise ClosedError(code, payload[2:].decode())
        return first & 0x0F, payload

    def until_closed(self) -> ClosedError:
        """How the server closes the connection; what comes before is kept in `notes`."""
        while True:
            try:
                self.notes.append(self.receive())
            except ClosedError as closed:
                return closed

    def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            try:
                some = self.socket.recv(1 << 16)
            except ConnectionError as error:
                raise ClosedError(None) from error
            if not some:
                raise ClosedError(None)
            self._received += some
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def _read_response(self) -> Response:
        while b"\r\n\r\n" not in self._received:
            some = self.socket.recv(1 << 16)
            if not some:
                raise ClosedError(None)
            self._received += some
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status, headers = _parsed(head)
        if status == 101:
            return Response(status, headers, b"")
        length = headers.get("content-length")
        body = self._received + b"".join(_rest_of(self.socket)) if length is None else self._read(int(length))
        return Response(status, headers, body)


def connected(
    port: int,
    *,
    timeout: float = 60.0,
    receive_buffer: int | None = None,
    tls: ssl.SSLContext | None = None,
) -> socket.socket:
    """A connection to a port of this machine."""
    plain = socket.socket()
    plain.settimeout(timeout)
    try:
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.connect(("127.0.0.1", port))
        return plain if tls is None else tls.wrap_socket(plain, server_hostname="127.0.0.1")
    except BaseException:
        plain.close()
        raise


def http_head(method: str, path: str, headers: Mapping[str, str | None]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items() if value is not None)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def exchange(port: int, raw: bytes, *, timeout: float = 60.0) -> bytes:
    """All that the server says to these bytes until it closes the connection."""
    with connected(port, timeout=timeout) as plain:
        plain.sendall(raw)
        return b"".join(_rest_of(plain))


def fetch(
    port: int,
    path: str,
    *,
    method: str = "GET",
    token: str | None = None,
    headers: Mapping[str, str | None] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Response:
    """The answer to one HTTP request."""
    given: dict[str, str | None] = {
        "Host": f"127.0.0.1:{port}",
        "Connection": "close",
        "Authorization": None if token is None else f"Bearer {token}",
        **(headers or {}),
    }
    with connected(port, tls=tls) as plain:
        plain.sendall(http_head(method, path, given))
        whole = b"".join(_rest_of(plain))
    head, _, body = whole.partition(b"\r\n\r\n")
    return Response(*_parsed(head), body)


def _rest_of(plain: socket.socket) -> Iterator[bytes]:
    try:
        while some := plain.recv(1 << 16):
            yield some
    except ConnectionError:
        return


def _parsed(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers
