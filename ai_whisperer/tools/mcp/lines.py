"""Messages of an MCP server out of what its process writes: one a line, of bounded length, whatever it writes."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from msgspec import UNSET, UnsetType

MAX_LINE_BYTES = 2 << 20
"""To read one of that length takes a few dozen milliseconds, if it has not too many parts."""

_MAX_PARTS = 150_000
TOO_MANY_PARTS = f"the answer has more than {_MAX_PARTS:,} lists and objects."

LISTENED_TO = ("notifications/progress", "notifications/tools/list_changed", "notifications/cancelled")
"""What servers may tell without being asked; all else is dropped."""

_MAX_SKIPPED_BYTES = 64 << 20
_END_BYTES = 200
_ID_AT_BEGINNING = re.compile(rb'\{"jsonrpc":\s*"2\.0",\s*"id":\s*(\d{1,9}),')
_ID_AT_END = re.compile(rb'"id":\s*(\d{1,9})\s*\}\s*\Z')

Message = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError


class EndlessLineError(Exception):
    """A line is so long that it may have no end."""


class _Error(msgspec.Struct):
    code: int
    message: str


class _Line(msgspec.Struct):
    jsonrpc: str
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET
    result: dict[str, Any] | UnsetType = UNSET
    error: _Error | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Line).decode


class Lines:
    """Puts pieces of output together to lines. One that is too long becomes an error of the request it answers."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skipped = 0
        self._beginning = b""

    def feed(self, some: bytes) -> Iterator[bytes | JSONRPCError]:
        """The lines that are whole now; raises `EndlessLineError`."""
        *whole, rest = some.split(b"\n")
        for part in whole:
            self._buffer += part
            line = bytes(self._buffer)
            self._buffer.clear()
            if self._skipped or len(line) > MAX_LINE_BYTES:
                yield from self._too_long(line)
            elif has_too_many_parts(line):
                yield from refused(line, TOO_MANY_PARTS)
            elif line.strip():
                yield line
        self._buffer += rest
        if len(self._buffer) > MAX_LINE_BYTES:
            self._beginning = self._beginning or bytes(self._buffer[:_END_BYTES])
            self._skipped += len(self._buffer) - _END_BYTES
            del self._buffer[:-_END_BYTES]
            if self._skipped > _MAX_SKIPPED_BYTES:
                raise EndlessLineError

    def _too_long(self, line: bytes) -> Iterator[JSONRPCError]:
        size = self._skipped + len(line)
        ends = (self._beginning or line[:_END_BYTES]) + b"\n" + line[-_END_BYTES:]
        self._skipped, self._beginning = 0, b""
        yield from refused(ends, f"the answer has {size:,} bytes, and at most {MAX_LINE_BYTES:,} are taken.")


def has_too_many_parts(message: bytes) -> bool:
    """Whether it may have so many lists and objects that to read it holds the event loop up."""
    return message.count(b"[") + message.count(b"{") > _MAX_PARTS


def refused(message: bytes, told: str) -> Iterator[JSONRPCError]:
    """An error in place of an answer that is not taken, if it can be told which request it answers."""
    found = _ID_AT_BEGINNING.match(message[:_END_BYTES]) or _ID_AT_END.search(message[-_END_BYTES:])
    if found is not None:
        error = ErrorData(code=INTERNAL_ERROR, message=f"{told} Ask for less.")
        yield JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)


def message_of(line: bytes) -> Message | None:
    """The message in a line; None if it is none.

    What the library itself would do to check it takes ten times as long, and holds the event loop up.
    """
    collects = gc.isenabled()
    gc.disable()  # many small objects at once are no garbage, and to look for some among them would take the longest
    try:
        read = _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    finally:
        if collects:
            gc.enable()
    return _message(read) if read.jsonrpc == "2.0" else None


def _message(read: _Line) -> Message | None:
    params = None if read.params is UNSET else read.params
    if read.method is not UNSET:
        if read.id is UNSET or read.id is None:
            return JSONRPCNotification.model_construct(jsonrpc="2.0", method=read.method, params=params)
        return JSONRPCRequest.model_construct(jsonrpc="2.0", id=read.id, method=read.method, params=params)
    if read.id is UNSET or read.id is None:
        return None
    if read.error is not UNSET:
        error = ErrorData(code=read.error.code, message=read.error.message)
        return JSONRPCError(jsonrpc="2.0", id=read.id, error=error)
    if read.result is not UNSET:
        return JSONRPCResponse.model_construct(jsonrpc="2.0", id=read.id, result=read.result)
    return None
