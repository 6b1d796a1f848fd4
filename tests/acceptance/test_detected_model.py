"""A program that names no model is answered by the one that the server would find, and is told which that is."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.tasks import Budget, TaskState
from ai_whisperer.errors import TaskEndedError
from ai_whisperer.models import detection
from ai_whisperer.models.detection import KEYS, SERVERS, detect_model
from ai_whisperer.testing.model_server import ModelServer, Reply

_VARIABLES = ["WHISPERER_MODEL", *(name for names in (*KEYS.values(), *SERVERS.values()) for name in names)]


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(detection, "_found", {})
    monkeypatch.setattr(detection, "detect_model", partial(detect_model, usual_addresses={}))


def test_a_manager_that_names_no_model_uses_the_server_that_the_environment_names_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> list[str]:
        async with ModelServer(lambda *_: Reply(text="Hello from the provider."), models=["own-model"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "any")
            async with AsyncAgentSessionManager(templates=()) as manager:
                for name in ("analyzer", "writer"):
                    await manager.create_agent(name)
                return [await manager.run_task(name, "Say hello") for name in ("analyzer", "writer")]

    assert asyncio.run(scenario()) == ["Hello from the provider."] * 2
    told = [record for record in caplog.records if record.name == detection.__name__]
    assert [record.getMessage().partition(" (")[0] for record in told] == ["The model is openai-chat:own-model"]
    assert told[0].levelno >= logging.WARNING  # below that nothing is shown to who has not set up logging
    assert "any" not in told[0].getMessage().split()


def test_without_a_key_the_scripted_model_answers_and_says_what_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with AsyncAgentSessionManager(templates=()) as manager:
            await manager.create_agent("alice")
            await manager.run_task("alice", "Say hello")

    asyncio.run(scenario())
    assert "scripted:demo, the built-in one with fixed answers (the environment has no key" in caplog.text


@pytest.mark.parametrize(
    ("variable", "value", "model"),
    [
        ("OPENAI_API_KEY", "some key", "openai-chat:gpt-5.4-mini"),
        ("WHISPERER_MODEL", "scripted", "scripted"),
        ("WHISPERER_MODEL", "auto", "scripted:demo"),
    ],
)
def test_the_environment_names_the_model(
    variable: str, value: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert detection.found_model(os.environ).model == model


def test_a_model_that_is_named_in_a_variable_and_does_not_exist_fails_the_task_with_the_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WHISPERER_MODEL", "nonsense")

    async def scenario() -> None:
        async with AsyncAgentSessionManager(templates=()) as manager:
            await manager.create_agent("alice")
            with pytest.raises(TaskEndedError, match="no model 'nonsense'"):
                await manager.run_task("alice", "Say hello")

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["openai-chat:gpt-4o", "auto"])
def test_a_first_request_that_costs_more_than_there_is_is_not_sent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with ModelServer(lambda *_: Reply(text="Hello."), models=["gpt-4o"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "any")
            async with AsyncAgentSessionManager(templates=()) as manager:
                await manager.create_agent("alice", {"model": name})
                poor = await manager.send_task("alice", "Say hello", budget=Budget(max_cost_usd=0.000_001))
                ended = await manager.wait_task(poor)
                assert ended.error is not None
                assert "too small" in ended.error.message
                assert not asked(server)
                rich = await manager.send_task("alice", "Say hello", budget=Budget(max_cost_usd=1.0))
                assert (await manager.wait_task(rich)).state is TaskState.COMPLETED
                assert len(asked(server)) == 1

    def asked(server: ModelServer) -> list[str]:
        return [request.path for request in server.received if not request.path.endswith("/models")]

    asyncio.run(scenario())
