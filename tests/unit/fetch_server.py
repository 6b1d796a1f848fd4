"""An HTTP server on loopback that misbehaves as it is asked to, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import zlib
from collections.abc import Callable, Iterator


def answer(body: bytes = b"", *, status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    """A whole response; underscores in the names of headers stand for dashes."""
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    lines.append(f"content-length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def bomb(size: int) -> bytes:
    """Zeros, compressed as gzip: about a thousandth of the size."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(deflate.compress(bytes(1 << 20)) for _ in range(size >> 20)) + deflate.flush()


class FetchServer:
    """Answers by path. `paths` has the bytes that a path gets, `endless` what is sent again and again after them.

    `requests` holds the head and the beginning of the body of each request, as they came.
    """

    def __init__(self) -> None:
        self.port = 0
        self.paths: dict[str, bytes] = {}
        self.endless: dict[str, bytes] = {}
        self.stalling: set[str] = set()
        self.requests: list[str] = []
        self._stop: Callable[[], object] = lambda: None

    def forget(self) -> None:
        """Begin anew: no path is known, no request was made."""
        self.paths.clear()
        self.endless.clear()
        self.stalling.clear()
        self.requests.clear()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    @contextlib.contextmanager
    def running(self) -> Iterator[FetchServer]:
        ready = threading.Event()
        thread = threading.Thread(target=asyncio.run, args=(self._serve(ready),), daemon=True)
        thread.start()
        ready.wait(60)
        try:
            yield self
        finally:
            self._stop()
            thread.join(60)

    async def _serve(self, ready: threading.Event) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await stop.wait()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            first = await reader.readexactly(1)
            if first == b"\x16":  # the beginning of TLS, of which this server knows nothing
                writer.write(answer(status="400 Bad Request"))
            else:
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                await self._answer(head, reader, writer)
        writer.close()

    async def _answer(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = head.split(" ")[1].partition("?")[0]
        body = b"" if "content-length: " not in head else await reader.read(65_536)
        self.requests.append(head + body.decode())
        writer.write(self.paths.get(path, answer(b"no such page", status="404 Not Found", content_type="text/plain")))
        await writer.drain()
        while path in self.endless:
            writer.write(self.endless[path])
            await writer.drain()
        if path in self.stalling:
            await reader.read(1)
