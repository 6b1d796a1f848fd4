"""Work of the runtime itself that has to wait, each piece an asyncio task with an owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from typing import Any

from ai_whisperer.errors import WhispererError

_log = logging.getLogger(__name__)


class Background:
    """Runs what follows from a timer or a failure and takes time, such as to end a loop with its tools."""

    def __init__(self, event_loop: asyncio.AbstractEventLoop) -> None:
        self._event_loop = event_loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def run(self, chore: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None] | None:
        """Run it to its end, in a context of its own: it does not act for whoever happened to run now.

        After `close` it is not begun, and there is no task.
        """
        if self._closed:
            chore.close()
            return None
        task = self._event_loop.create_task(_quietly(chore, name), name=name, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: chore.close())  # it may have been cancelled before it could begin
        return task

    @property
    def is_busy(self) -> bool:
        """Whether anything is under way."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Cancel what is left and return when it has ended. What it was to do is found again at the next start."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait until this has ended, also if whoever waits is cancelled meanwhile: then that is told afterwards."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        except Exception:  # noqa: BLE001, S110 - the task has it, see below
            pass
    await task
    if cancelled:
        raise asyncio.CancelledError


async def _quietly(chore: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await chore
    except WhispererError as error:
        _log.info("%s was not done: %s", name, error.message)  # the agent or the task went another way meanwhile
    except Exception:  # noqa: BLE001 - a fault of ours must not end the process; the log has it
        _log.exception("%s failed", name)
