"""What a person types, or another program writes, line by line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import TextIO

_CHUNK_BYTES = 1 << 16


async def typed_lines(stream: TextIO) -> AsyncIterator[str]:
    """The lines of the stream as they come, until it ends. The event loop goes on meanwhile, without a thread: one that
    waits for a person cannot be ended."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    try:
        descriptor = stream.fileno()
        loop.add_reader(descriptor, lambda: chunks.put_nowait(_read(loop, descriptor)))
    except OSError:  # a file on disk, or none at all: it lets nobody wait
        for line in stream:
            yield line.rstrip("\n")
        return
    try:
        rest = b""
        while chunk := await chunks.get():
            *whole, rest = (rest + chunk).split(b"\n")
            for each in whole:
                yield each.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")
    finally:
        loop.remove_reader(descriptor)


def _read(loop: asyncio.AbstractEventLoop, descriptor: int) -> bytes:
    """What has come; empty at the end, which is told once."""
    try:
        chunk = os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        chunk = b""
    if not chunk:
        loop.remove_reader(descriptor)
    return chunk
