"""Calling a program's own function with each notification of a session."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable

from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import InvalidInputError, WhispererError
from ai_whisperer.runtime.agents.tool_step import is_being_cancelled
from ai_whisperer.runtime.session.log import Subscription

NotificationCallback = Callable[[Notification], Awaitable[None] | None]
"""A function, or a coroutine function, that takes a notification."""

_log = logging.getLogger(__name__)


def checked_callback(given: NotificationCallback | None) -> NotificationCallback | None:
    """What was given; raises `InvalidInputError` unless it can be called."""
    if given is not None and not callable(given):
        raise InvalidInputError(
            f"notification_callback must be a function that takes a notification, not {type(given).__name__}."
        )
    return given


class Notifying:
    """Calls back with one notification after the other, in order, until the session is closed.

    A callback that is slow holds up nobody but itself, and one that fails is called again with the next notification:
    what it raised is in the log.
    """

    def __init__(self, subscription: Subscription, callback: NotificationCallback) -> None:
        self._callback = callback
        self._task = asyncio.create_task(self._run(subscription), name="notification callback")

    async def end(self, *, grace_seconds: float) -> None:
        """Let it hear the last of a session that was closed, for so long, unless it closes the session itself."""
        if self._task is not asyncio.current_task():
            await asyncio.wait([self._task], timeout=grace_seconds)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, subscription: Subscription) -> None:
        try:
            async for note in subscription:
                await self._tell(note)
        except WhispererError as failure:
            _log.error("the notification callback hears no more of the session: %s", failure)

    async def _tell(self, note: Notification) -> None:
        try:
            answer = self._callback(note)
            if inspect.isawaitable(answer):
                await answer
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            _log.warning("what the notification callback waited for at %s was cancelled", note.name)
        except Exception:  # noqa: BLE001 - anybody's code: it must not end what others rely on
            _log.exception("the notification callback failed at %s number %s", note.name, note.seq)
