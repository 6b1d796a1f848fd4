"""What one HTTP client reads from its connections: a little at a time, and of the head of a response only so much.

The client libraries have no setting for either, only class attributes that hold for every client of the process, also
for those of a program that embeds this one. So the connections themselves are wrapped.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

MAX_HEAD_BYTES = 16 << 10
"""So much the status and the headers of a response may be, with all that is sent before them."""
_READ_BYTES = 4 << 10
"""Some fifteen events of most providers: more of them would take longer than the turn."""
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_WAY_TO_PARSER = ("stream", "_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state")
_INFORMATIONAL = re.compile(rb"HTTP/1\.[01] 1\d\d")


def bound_reads(client: Any) -> None:
    """Bound what an asynchronous client of httpx or httpx2 reads. Other kinds of transport are left as they are."""
    package = type(client).__module__.partition(".")[0].replace("httpx", "httpcore")
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001 - nobody else knows the connections
        pool: Any = getattr(transport, "_pool", None)
        if hasattr(pool, "_network_backend") and not pool._http2:  # noqa: SLF001 - HTTP/2 bounds its heads by itself
            pool._network_backend = _Backend(pool._network_backend, package)  # noqa: SLF001


def bound_trailers(response: Any) -> None:
    """Bound what may come after the body of a response as its head is bounded. Call it before the body is read."""
    part: Any = response
    for name in _WAY_TO_PARSER:
        part = getattr(part, name, None)
    if part is not None:
        part._max_incomplete_event_size = MAX_HEAD_BYTES  # noqa: SLF001 - the parser of this one connection


class _Backend:
    """Opens connections that read in bounds."""

    def __init__(self, backend: Any, package: str) -> None:
        self._backend = backend
        self._error_class: type[Exception] = import_module(package).RemoteProtocolError

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> _Stream:
        return _Stream(await self._backend.connect_tcp(*args, **kwargs), self._error_class)

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> _Stream:
        return _Stream(await self._backend.connect_unix_socket(*args, **kwargs), self._error_class)

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _Stream:
    """A connection. What comes after something was sent is a head, until its end."""

    def __init__(self, stream: Any, error_class: type[Exception]) -> None:
        self._stream = stream
        self._error_class = error_class
        self._head: bytearray | None = None
        self._head_bytes = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as it is called
        data: bytes = await self._stream.read(min(max_bytes, _READ_BYTES), timeout)
        if self._head is not None:
            self._read_head(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as it is called
        self._head, self._head_bytes = bytearray(), 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *args: Any, **kwargs: Any) -> _Stream:
        return _Stream(await self._stream.start_tls(*args, **kwargs), self._error_class)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _read_head(self, data: bytes) -> None:
        self._head = head = (self._head or bytearray()) + data
        while end := _END_OF_HEAD.search(head):
            if not _INFORMATIONAL.match(head):
                self._head = None
                return
            self._head_bytes += end.end()
            del head[: end.end()]
        if self._head_bytes + len(head) > MAX_HEAD_BYTES:
            raise self._error_class(f"The head of the response has more than {MAX_HEAD_BYTES:,} bytes.")
