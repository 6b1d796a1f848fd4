"""A way to PostgreSQL that can be cut, held up and made slow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes on to PostgreSQL. `cut_after` is how many from the server are passed on before all is cut.

    Unless it `takes`, new connections are refused; so many of the next are taken as it is `deaf`, and nothing is heard
    of them. What it `holds` comes through when it holds no more: until then
    connections are taken, and nothing passes.
    """

    def __init__(self, address: str) -> None:
        at = urlsplit(address)
        self._host, self._port = at.hostname, at.port
        self._address = address
        self._open: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self.cut_after: int | None = None
        self.delay_seconds = 0.0
        self.takes = True
        self.deaf = 0
        self.cuts = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._taken, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            yield self._address.replace(f":{self._port}/", f":{port}/")
        finally:
            server.close()
            self.release()
            self.cut()
            await asyncio.sleep(0)

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    def hold(self) -> None:
        """Take everything, and pass nothing on."""
        self._passing.clear()

    def release(self) -> None:
        self._passing.set()

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.takes:
            writer.transport.abort()
            return
        self._open.add(writer)
        if self.deaf:
            self.deaf -= 1
            return
        try:
            await self._passing.wait()
            theirs, ours = await asyncio.open_connection(self._host, self._port)
        except OSError:
            self._open.discard(writer)
            writer.transport.abort()
            return
        self._open.add(ours)
        passing = [
            asyncio.create_task(self._pass(reader, ours, counts=False)),
            asyncio.create_task(self._pass(theirs, writer, counts=True)),
        ]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (writer, ours):  # neither side is left with half a connection
                self._open.discard(each)
                each.transport.abort()
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool) -> None:
        while data := await reader.read(1 << 16):
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            await self._passing.wait()
            if counts and self.cut_after is not None:
                self.cut_after -= len(data)
                if self.cut_after < 0:
                    self.cut_after, self.cuts = None, self.cuts + 1
                    self.cut()
                    return
            writer.write(data)
            await writer.drain()
