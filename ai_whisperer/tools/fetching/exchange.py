"""One request and its response over a connection of its own. Proxies, cookies and stored passwords are not used."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import lru_cache

import h11

from ai_whisperer.core.address_kinds import IPAddress
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.fetching.target import Target

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[IPAddress, Target], Awaitable[Streams]]
"""Opens a connection to exactly that address, with TLS for the name of the target if it is `https`."""

_CHUNK_BYTES = 64 << 10
_MAX_HEAD_BYTES = 64 << 10
_SECONDS_TO_CONNECT = 10.0
_EVENTS_IN_A_ROW = 100
_MAX_INTERIM = 20
_SMALL_CHUNKS_FREE = 10_000
_MIN_AVERAGE_BYTES = 16
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


async def connect(address: IPAddress, target: Target) -> Streams:
    """The connection for real; certificates are checked against the target's name."""
    context = await asyncio.to_thread(_trusted) if target.scheme == "https" else None
    name = target.host if context is not None else None
    return await asyncio.open_connection(str(address), target.port, ssl=context, server_hostname=name)


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


async def connected(addresses: Iterable[IPAddress], target: Target, connect: Connect) -> Streams:
    """A connection to the first of the addresses that answers; raises `ToolError` if none does."""
    told = ""
    for address in addresses:
        try:
            async with asyncio.timeout(_SECONDS_TO_CONNECT):
                return await connect(address, target)
        except ssl.SSLCertVerificationError as error:
            told = f"its certificate is not valid: {error.verify_message}"
        except ssl.SSLError as error:
            told = f"no secure connection could be made: {error.reason or error}"
        except TimeoutError:
            told = "it does not answer"
        except ConnectionRefusedError:
            told = "it refused the connection"
        except OSError as error:
            told = error.strerror or str(error)
    raise ToolError(f"{target.host} could not be reached at port {target.port}: {told}.")


class Exchange:
    """A request and its response on an open connection."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._events = 0

    async def ask(self, target: Target, method: str, *, headers: Mapping[str, str], body: bytes) -> h11.Response:
        """Send the request and return the head of the response; raises `ToolError` if what comes is not HTTP."""
        fields = [("host", target.authority), *headers.items(), ("connection", "close")]
        if body or method not in ("GET", "HEAD"):
            fields.append(("content-length", str(len(body))))
        try:
            sent = self._protocol.send(h11.Request(method=method, target=target.path, headers=fields)) or b""
            sent += self._protocol.send(h11.Data(data=body)) or b""
            sent += self._protocol.send(h11.EndOfMessage()) or b""
        except (h11.LocalProtocolError, UnicodeError) as error:
            raise ToolError(f"The request cannot be sent: {error}. Correct the headers.") from error
        try:
            self._writer.write(sent)
            await self._writer.drain()
            event = await self._answer()
        except (h11.RemoteProtocolError, OSError) as error:
            raise ToolError(f"{target.url} did not answer with HTTP: {error}.") from error
        if not isinstance(event, h11.Response):
            raise ToolError(f"{target.url} did not answer with HTTP: the connection was closed.")
        return event

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, not decoded; raises `EOFError` if the connection ends before the body does."""
        count = size = 0
        try:
            while isinstance(event := await self._event(), h11.Data):
                count += 1
                size += len(event.data)
                if count > _SMALL_CHUNKS_FREE and size < count * _MIN_AVERAGE_BYTES:
                    raise EOFError(f"it came in too many pieces, {count:,} for {size:,} bytes")
                yield bytes(event.data)
        except (h11.RemoteProtocolError, OSError) as error:
            raise EOFError(str(error)) from error

    def close(self) -> None:
        self._writer.transport.abort()

    async def _answer(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The first event that is not just word that the answer is on its way."""
        for _ in range(_MAX_INTERIM + 1):
            if not isinstance(event := await self._event(), h11.InformationalResponse):
                return event
        raise h11.RemoteProtocolError(f"there were more than {_MAX_INTERIM} interim answers")

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        self._events += 1
        if self._events % _EVENTS_IN_A_ROW == 0:
            await asyncio.sleep(0)  # to read what has come already lets nobody else in
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            self._protocol.receive_data(await self._reader.read(_CHUNK_BYTES))
        return event


class Decoder:
    """Takes the compression off a body piece by piece, so that a little data never becomes much memory at once."""

    def __init__(self, encoding: str) -> None:
        """`encoding` as the header has it; raises `ToolError` for one that was not asked for."""
        name = encoding.strip().lower()
        if name not in ("", "identity", *_WINDOW_BITS):
            raise ToolError(f"The body comes in the encoding {name[:100]!r}, which was not asked for and is not known.")
        self._is_raw_possible = name == "deflate"
        self._inflate = zlib.decompressobj(_WINDOW_BITS[name]) if name in _WINDOW_BITS else None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What the data decodes to, in pieces of bounded size; raises `EOFError` if it cannot be decoded."""
        if self._inflate is None:
            yield data
            return
        try:
            while data and not self._inflate.eof:
                piece = self._decompressed(data)
                data = self._inflate.unconsumed_tail
                yield piece
        except zlib.error as error:
            raise EOFError(f"the compressed data is damaged: {error}") from error

    def _decompressed(self, data: bytes) -> bytes:
        if self._inflate is None:
            return data
        try:
            piece = self._inflate.decompress(data, _CHUNK_BYTES)
        except zlib.error:
            if not self._is_raw_possible:
                raise
            self._inflate = zlib.decompressobj(-15)  # many servers leave out the frame that `deflate` means
            piece = self._inflate.decompress(data, _CHUNK_BYTES)
        self._is_raw_possible = False
        return piece
