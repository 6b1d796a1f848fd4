"""Doing several things at the same time until one of them has ended."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar, overload

from ai_whisperer.cli.typed_lines import readable

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")


@overload
async def first_of(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U], /) -> T | U: ...


@overload
async def first_of(
    one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U], third: Coroutine[Any, Any, V], /
) -> T | U | V: ...


async def first_of(*works: Coroutine[Any, Any, Any]) -> Any:
    """What the first that ends returns or raises. The others are cancelled, and gone when this returns."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def while_somebody_reads(work: Coroutine[Any, Any, None]) -> None:
    """Do this until it ends. If stdout is a pipe whose reader goes away, raise `BrokenPipeError` at once: whoever waits
    for something that may never come would not find out by writing."""
    await first_of(work, _reader_gone())


async def _reader_gone() -> None:
    try:
        pipe = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(pipe).st_mode)
    except OSError:
        is_pipe = False
    if not is_pipe:
        await asyncio.Event().wait()
    await readable(pipe)
    raise BrokenPipeError(errno.EPIPE, "nobody reads the output")
