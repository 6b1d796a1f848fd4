"""What two nodes send each other: frames of clients, each with the number of the channel that it belongs to."""

from __future__ import annotations

import struct
from enum import IntEnum

import msgspec

PATH = "/node"
"""Where a node takes the WebSockets of others."""
TO = "to"
"""In its query: the name of the node that is meant."""

_HEAD = struct.Struct(">BI")
OVERHEAD_BYTES = 1 << 10
"""What a request may be longer when it is passed on: by its head, and by the number that stands for its id."""


class Kind(IntEnum):
    """What a message is: the first or the last of its channel, or one between."""

    OPEN = 1
    DATA = 2
    CLOSE = 3


class Opening(msgspec.Struct, frozen=True):
    """Whose channel it is."""

    principal: str


class Closing(msgspec.Struct, frozen=True):
    """Why a channel is over, as a WebSocket would be closed."""

    code: int
    reason: str


opening_in = msgspec.json.Decoder(Opening).decode


def packed(kind: Kind, channel: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(kind, channel) + payload


def unpacked(message: bytes) -> tuple[Kind, int, bytes]:
    """Raises `ValueError` for what is no message."""
    try:
        kind, channel = _HEAD.unpack_from(message)
        return Kind(kind), channel, message[_HEAD.size :]
    except struct.error as error:
        raise ValueError(str(error)) from error
