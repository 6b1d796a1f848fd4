"""A provider that goes away and comes back, over real HTTP."""

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.testing.model_server import ModelServer, Reply, obliging

pytestmark = pytest.mark.usefixtures("provider_environment")

QUICK = {"retry": {"max_attempts": 2, "first_delay_seconds": 0.01, "max_delay_seconds": 0.1}}
"""Fewer attempts than the outage lasts for, were they what counts."""


class Provider:
    """Answers as it is told to, and counts."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.asked = 0
        self.enough = asyncio.Event()

    def __call__(self, body: dict[str, Any], number: int) -> Reply:
        self.asked += 1
        if self.asked >= 8:
            self.enough.set()
        return obliging(body, number) if self.status is None else Reply(status=self.status, error="that went wrong")


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_a_provider_that_fails_for_a_while_is_waited_for(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        provider = Provider()
        provider.status = status
        async with asyncio.timeout(60), ModelServer(provider) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            async with AsyncAgentSessionManager(model="openai-chat:test-model") as manager:
                await manager.create_agent("a", QUICK)
                task = await manager.send_task("a", "go")
                await provider.enough.wait()
                provider.status = None
                ended = await manager.wait_task(task)
                (step,) = await manager.list_steps(task.id)
        assert ended.state is TaskState.COMPLETED
        assert step.attempt > 8
        assert (step.failures, step.outage_seconds > 0) == (0, True)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "words"), [(400, "Correct it"), (401, "Check the key"), (404, "does not know the model")]
)
def test_what_waiting_does_not_help_fails_at_once(status: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        provider = Provider()
        provider.status = status
        async with asyncio.timeout(60), ModelServer(provider) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            async with AsyncAgentSessionManager(model="openai-chat:test-model") as manager:
                await manager.create_agent("a", QUICK)
                ended = await manager.wait_task(await manager.send_task("a", "go"))
        assert ended.state is TaskState.FAILED
        assert ended.error is not None
        assert words in ended.error.message
        assert provider.asked == 1

    asyncio.run(run())


def test_a_provider_that_is_not_there_is_waited_for_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with ModelServer() as server:
            url = server.base_url
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        port = int(url.rsplit(":", 1)[1].split("/")[0])
        async with asyncio.timeout(60), AsyncAgentSessionManager(model="openai-chat:test-model") as manager:
            await manager.create_agent("a", QUICK)
            retries = 0
            notes = manager.subscribe(after=0)
            task = await manager.send_task("a", "go")
            async for note in notes:
                retries += note.name == "step.retried"
                if retries == 8:
                    break
            status = manager.get_agent_status("a")
            assert "could not be reached" in status.retry_reason
            async with ModelServer(obliging, port=port):
                assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    asyncio.run(run())
