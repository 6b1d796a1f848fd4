"""What the server and the keeper of a job say to each other, over a socket of that job alone.

The server says one thing, the order. When it closes its side before it was told the end, the job is killed.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable

import msgspec

from ai_whisperer.domain.record import Record
from ai_whisperer.sandbox.base import Job, Outcome

LEVEL_BYTES = 16
"""As long as the name of a level is, with the spaces after it, where a keeper is asked for."""

_LENGTH = struct.Struct("!I")
_PIECE_BYTES = 1 << 16
"""As much as the event loop takes at a time."""


class Order(Record, frozen=True, kw_only=True):
    """The job, and the level that has to hold it."""

    level: str
    job: Job


class Piece(Record, frozen=True, kw_only=True, tag="piece"):
    """Some of the output, while the job runs."""

    output: bytes


class Ended(Record, frozen=True, kw_only=True, tag="ended"):
    """The job has ended, and all its processes are gone."""

    outcome: Outcome


class Refused(Record, frozen=True, kw_only=True, tag="refused"):
    """The job could not be started or held; nothing of it runs."""

    message: str


Report = Piece | Ended | Refused

_decode_order = msgspec.msgpack.Decoder(Order).decode
_decode_report: Callable[[bytes], Report] = msgspec.msgpack.Decoder(Report).decode


def framed(record: Record) -> bytes:
    """The record with its length before it."""
    body = msgspec.msgpack.encode(record)
    return _LENGTH.pack(len(body)) + body


def read_order(connection: socket.socket) -> Order:
    """The order that comes over a blocking socket; raises `EOFError` if the server is gone."""
    return _decode_order(read_body(connection))


def read_body(connection: socket.socket) -> bytes:
    """The next record that comes over a blocking socket, without its length; raises `EOFError` if it is closed."""
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    return _read(connection, length)


def _read(connection: socket.socket, length: int) -> bytes:
    read = bytearray()
    while len(read) < length:
        piece = connection.recv(min(length - len(read), 1 << 20))
        if not piece:
            raise EOFError
        read += piece
    return bytes(read)


async def hear_report(receive: Callable[[int], Awaitable[bytes]]) -> Report:
    """The next report of a keeper, from what `receive` gives of it; raises `EOFError` if the keeper is gone."""
    (length,) = _LENGTH.unpack(await _hear(receive, _LENGTH.size))
    return _decode_report(await _hear(receive, length))


async def _hear(receive: Callable[[int], Awaitable[bytes]], length: int) -> bytes:
    heard = bytearray()
    while len(heard) < length:
        piece = await receive(min(length - len(heard), _PIECE_BYTES))
        if not piece:
            raise EOFError
        heard += piece
    return bytes(heard)
