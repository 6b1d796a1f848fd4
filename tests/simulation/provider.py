"""A provider that is down for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.providers import Account
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import ModelError, ModelRateLimitError, ModelUnavailableError
from ai_whisperer.models.base import TAKEN, ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from tests.simulation.stage import prompt_of, until

DOWN = "The provider failed (status 503)."
ACCOUNT = Account(provider="test", address="provider.test", key="12345678")


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


class CrowdedProvider:
    """A model behind an account: it answers so many requests at a time, and refuses the others at once.

    From `down_from` to `up_at` it is down. `busiest` is how many it has answered at the same time, `asked_at` has the
    times at which it was asked, and `refused_at` those at which it refused.
    """

    def __init__(
        self,
        say: Callable[[ModelRequest], Answer | str] = lambda request: f"done: {prompt_of(request)}",
        *,
        most: int = 10**9,
        latency_seconds: float = 0.1,
        retry_after_seconds: float | None = None,
        down_from: float = 0.0,
        up_at: float = 0.0,
        account: Account | None = ACCOUNT,
    ) -> None:
        self.account = account
        self.most = most
        self.retry_after_seconds = retry_after_seconds
        self.asked_at: list[float] = []
        self.asked: list[str] = []
        self.refused_at: list[float] = []
        self.busiest = 0
        self.answering = 0
        self._down_from, self._up_at = down_from, up_at
        self._answers = FunctionModel(say, latency_seconds=latency_seconds)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked_at.append(now())
        self.asked.append(request.agent_id)
        if self._down_from <= now() < self._up_at:
            raise ModelUnavailableError(DOWN)
        if self.answering >= self.most:
            self.refused_at.append(now())
            raise ModelRateLimitError("Too many at once.", retry_after_seconds=self.retry_after_seconds)
        self.answering += 1
        self.busiest = max(self.busiest, self.answering)
        try:
            await asyncio.sleep(0.01)
            yield TAKEN
            async for event in self._answers.stream(request):
                yield event
        finally:
            self.answering -= 1

    async def close(self) -> None:
        """There is nothing to close."""


async def ended(manager: AsyncAgentSessionManager, *tasks: TaskRecord) -> list[TaskRecord]:
    return [await manager.wait_task(task) for task in tasks]


async def waits_for_provider(manager: AsyncAgentSessionManager, agent_id: str = "a") -> None:
    await until(lambda: manager.get_agent_status(agent_id).retry_at is not None)
