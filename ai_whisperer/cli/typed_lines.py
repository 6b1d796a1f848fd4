"""What a person types, or another program writes, line by line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import TextIO

_CHUNK_BYTES = 1 << 16


async def typed_lines(stream: TextIO) -> AsyncGenerator[str]:
    """The lines of the stream as they come, until it ends.

    The event loop goes on meanwhile, without a thread: one that waits for a person cannot be ended. No more is read
    before what was read is used up, so that whoever writes faster than the lines are taken has to wait.
    """
    try:
        descriptor = stream.fileno()
        await readable(descriptor)
    except OSError:  # a file on disk, or none at all: it lets nobody wait
        for line in stream:
            yield line.rstrip("\n")
        return
    rest = b""
    while chunk := _read(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        for each in whole:
            yield each.decode(errors="replace")
        await readable(descriptor)
    if rest:
        yield rest.decode(errors="replace")


async def readable(descriptor: int) -> None:
    """Wait until something has come, or the end; raises `OSError` for what cannot be waited for."""
    loop = asyncio.get_running_loop()
    come = asyncio.Event()
    loop.add_reader(descriptor, come.set)
    try:
        await come.wait()
    finally:
        loop.remove_reader(descriptor)


def _read(descriptor: int) -> bytes:
    """What has come; empty at the end."""
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        return b""
