"""A provider that is down for a while."""

from __future__ import annotations

import asyncio

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import ModelError, ModelUnavailableError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import prompt_of, until

DOWN = "The provider failed (status 503)."


def now() -> float:
    return asyncio.get_running_loop().time()


class Provider:
    """Answers but in the time between `down_from` and `up_at`; keeps the times at which it was asked."""

    def __init__(
        self, *, down_from: float = 0.0, up_at: float, error: type[ModelError] = ModelUnavailableError
    ) -> None:
        self._down_from, self._up_at, self._error = down_from, up_at, error
        self.asked_at: list[float] = []

    def __call__(self, request: ModelRequest) -> str:
        self.asked_at.append(now())
        if self._down_from <= now() < self._up_at:
            raise self._error(DOWN)
        return f"done: {prompt_of(request)}"


async def ended(manager: AsyncAgentSessionManager, *tasks: TaskRecord) -> list[TaskRecord]:
    return [await manager.wait_task(task) for task in tasks]


async def waits_for_provider(manager: AsyncAgentSessionManager, agent_id: str = "a") -> None:
    await until(lambda: manager.get_agent_status(agent_id).retry_at is not None)
