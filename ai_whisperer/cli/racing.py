"""Doing several things at the same time until one of them has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, overload

T = TypeVar("T")
U = TypeVar("U")


@overload
async def first_of(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U], /) -> T | U: ...


@overload
async def first_of(*works: Coroutine[Any, Any, T]) -> T: ...


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
