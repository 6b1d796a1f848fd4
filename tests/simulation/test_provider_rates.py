"""Providers that take so many requests in a minute: those that come in between are refused, and none is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.errors import ModelRateLimitError
from ai_whisperer.models.base import ModelRequest, StreamEvent
from tests.simulation.provider import CrowdedProvider, ended, now
from tests.simulation.test_provider_gate import at, crowd, looks

REQUESTS = 4
"""So many does one task make that `looks`."""


class RatedProvider(CrowdedProvider):
    """Takes so many requests in any minute and refuses the others."""

    def __init__(self, per_minute: int, *, retry_after_seconds: float | None) -> None:
        super().__init__(looks, retry_after_seconds=retry_after_seconds)
        self._per_minute = per_minute
        self._taken_at: list[float] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if sum(time > now() - 60 for time in self._taken_at) >= self._per_minute:
            self.refused_at.append(now())
            raise ModelRateLimitError("Too many in a minute.", retry_after_seconds=self.retry_after_seconds)
        self._taken_at.append(now())
        async for event in super().stream(request):
            yield event


@pytest.mark.parametrize(
    ("loops", "per_minute", "retry_after_seconds"),
    [(1, 1, None), (3, 1, None), (5, 2, None), (100, 20, None), (100, 20, 1.0), (100, 20, 10.0)],
)
def test_nobody_fails_because_others_have_used_up_the_minute(
    loops: int, per_minute: int, retry_after_seconds: float | None
) -> None:
    provider = RatedProvider(per_minute, retry_after_seconds=retry_after_seconds)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = await ended(manager, *await crowd(manager, loops))
        assert Counter(task.state for task in tasks) == {TaskState.COMPLETED: loops}
        assert now() < 2 * 60 * loops * REQUESTS / per_minute, "most of what the provider takes is asked of it"

    at(provider, scenario)


def test_a_request_that_is_refused_long_after_others_were_taken_fails_by_its_attempts() -> None:
    provider = RatedProvider(10**9, retry_after_seconds=None)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await ended(manager, *await crowd(manager, 3))
        await asyncio.sleep(600)
        provider.most, begun = 0, now()
        failed = await manager.wait_task(await manager.send_task("a0", "go"))
        assert failed.error is not None
        assert (failed.error.code, now() < begun + 60) == ("model_rate_limit", True)

    at(provider, scenario)
