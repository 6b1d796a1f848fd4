"""Waits for somebody outside with a limit that counts only their time, not ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ai_whisperer.core.lateness import MOST_SPARED, spared_seconds

T = TypeVar("T")


class ConnectTimeoutError(TimeoutError):
    """The other side did not take part in time."""


async def within(seconds: float, work: Coroutine[Any, Any, T], *, discard: Callable[[T], None]) -> T:
    """The result of the work; raises `ConnectTimeoutError` if it takes longer than so many seconds.

    When the event loop was held up, what has come meanwhile is looked at first. A result that nobody wants any more is
    discarded.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    patience = seconds
    try:
        for _ in range(MOST_SPARED + 1):
            due = loop.time() + patience
            await asyncio.wait({task}, timeout=patience)
            patience = spared_seconds(late_seconds=loop.time() - due, patience_seconds=seconds)
            if task.done() or not patience:
                break
    except asyncio.CancelledError:
        await _end(task, discard)
        raise
    if task.done():
        return task.result()
    await _end(task, discard)
    raise ConnectTimeoutError


async def _end(task: asyncio.Task[T], discard: Callable[[T], None]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        discard(task.result())
