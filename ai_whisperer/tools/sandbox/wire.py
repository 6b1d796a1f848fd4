"""What the server and the keeper of a job say to each other, over a socket of that job alone."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

import msgspec

from ai_whisperer.base_record import Record
from ai_whisperer.tools.sandbox.base import Job, Outcome

KILL = b"K"
"""The one thing that the server says after the order. To close the socket means the same."""

LEVEL_BYTES = 16
"""As long as the name of a level is, with the spaces after it, where a keeper is asked for."""

_LENGTH = struct.Struct("!I")


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


async def read_report(reader: asyncio.StreamReader) -> Report:
    """The next report of a keeper; raises `IncompleteReadError` if it is gone."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return _decode_report(await reader.readexactly(length))
