"""A session that a server holds open, and what its agents do passed on to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ai_whisperer.errors import WhispererError
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager

LOG_SECONDS = 5.0
"""So long may take whoever has the logs of agents passed on, when a session is closed."""

_log = logging.getLogger(__name__)


class HeldSession:
    """An open session, and the task that passes on what its agents do."""

    def __init__(self, manager: AsyncAgentSessionManager, *, owner: str) -> None:
        self.manager = manager
        self.owner = owner
        self._closing: asyncio.Task[None] | None = None
        self._logging = asyncio.create_task(self._log(manager.log_agents()), name=f"log of {manager.session_id}")

    @property
    def is_held(self) -> bool:
        """Whether nobody closes it."""
        return self._closing is None

    @property
    def is_sound(self) -> bool:
        """Whether it can be used: nobody closes it, and the store took all that was decided."""
        return self._closing is None and self.manager.failure is None

    async def close(self, *, grace_seconds: float) -> None:
        """Close the session. Whoever calls while it is being closed waits for the same."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(grace_seconds), name=f"end of {self.manager.session_id}")
        await asyncio.shield(self._closing)

    async def _close(self, grace_seconds: float) -> None:
        try:
            await self.manager.close(grace_seconds=grace_seconds)
        except WhispererError as error:
            _log.error("session %s could not be closed cleanly: %s", self.manager.session_id, error)
        await asyncio.wait([self._logging], timeout=LOG_SECONDS)
        self._logging.cancel()

    async def _log(self, passing_on: Coroutine[Any, Any, None]) -> None:
        try:
            await passing_on
        except WhispererError as failure:
            _log.error("session %s has stopped: %s", self.manager.session_id, failure)
        except Exception:  # noqa: BLE001 - somebody's handler that fails stops nothing
            _log.exception("what the agents of session %s do is no longer passed on", self.manager.session_id)
