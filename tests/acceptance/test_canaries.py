"""Secrets that errors from outside quote are neither kept, nor told, nor logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState, ToolContext, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ModelServerError, ToolError
from ai_whisperer.models.base import Model, ModelRequest, StreamEvent, TextDelta
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.testing.model_server import ModelServer, Reply
from ai_whisperer.tools.function import AnyFunction
from tests.acceptance.provider_stage import KEY
from tests.simulation.stage import call, results_of, round_of

pytestmark = pytest.mark.usefixtures("provider_environment")

CANARY = "canary-of-a-tool-0123456789"
AGENT = {
    "retry": {"max_attempts": 2, "first_delay_seconds": 0.0, "max_delay_seconds": 0.0},
    "limits": {"max_outage_seconds": 0.01},
}


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLBOX_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG, logger="ai_whisperer")


async def work(
    data: Path, models: Callable[[str], Model], *, model: str = "x", tools: Sequence[AnyFunction] = ()
) -> tuple[TaskState, str]:
    """Give one task to one agent and log it all; returns how it ended, and all notifications and the log as JSON."""
    async with AsyncAgentSessionManager(data, model=model, model_factory=models, tools=tools) as manager:
        await manager.create_agent("ada", AGENT)
        subscription = manager.subscribe(after=0)
        ended = await manager.wait_task(await manager.send_task("ada", "go"))
    notes = [note async for note in subscription]
    async with AsyncAgentSessionManager(data, model=model, model_factory=models, tools=tools) as manager:
        log = (await manager.read_log("ada", limit=100, level="debug")).entries
    assert [entry["seq"] for entry in log][: len(notes)] == [note.seq for note in notes]
    return ended.state, msgspec.json.encode([*notes, *log]).decode()


def assert_no_canary(told: str, data: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert "async.task." in told
    kept = b"".join(file.read_bytes() for file in data.rglob("*") if file.is_file())
    assert b"async.task." in kept
    for canary in (KEY, CANARY):
        assert canary not in told
        assert canary.encode() not in kept
        assert canary not in caplog.text


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=401, error=f"Incorrect API key provided: {KEY}. Find yours at https://u:{CANARY}@host/?key={KEY}"),
        Reply(status=500, error=f"No upstream for Authorization: Bearer {KEY}"),
    ],
    ids=["refused", "retried"],
)
def test_a_provider_that_quotes_the_key(
    reply: Reply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[TaskState, str]:
        async with ModelServer(lambda _body, _number: reply) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            outcome = await work(tmp_path, resolve, model="openai-chat:test")
            assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
            return outcome

    state, told = asyncio.run(run())
    assert state is TaskState.FAILED
    assert "[secret]" in told
    assert_no_canary(told, tmp_path, caplog)


class Leaking:
    """A model whose client fails with a key in what it says, each time in another way."""

    name = "leaking"

    def __init__(self) -> None:
        self._errors = [ModelServerError(f"Not with {KEY}."), RuntimeError(f"{{'api_key': '{CANARY}'}}")]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        for error in self._errors[request.attempt - 1 :]:
            raise error
        yield TextDelta(text="never")

    async def close(self) -> None:
        pass


def test_a_model_of_ones_own_that_fails_with_a_key_in_its_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, told = asyncio.run(work(tmp_path, lambda _: Leaking()))
    assert state is TaskState.FAILED
    assert "Not with [secret]." in told
    assert_no_canary(told, tmp_path, caplog)


def test_tools_that_fail_with_a_key_in_their_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shown: list[str] = []

    def fetch() -> str:
        """Fetch it."""
        raise OSError(f"GET https://user:{CANARY}@host/ failed")

    @tool
    async def push(context: ToolContext) -> str:
        """Push it."""
        raise ToolError(f"{context.agent_id} may not push with {CANARY}.")

    def say(request: ModelRequest) -> Answer | str:
        shown.extend(results_of(request))
        steps: list[Answer | str] = [call("fetch"), call("push"), "done"]
        return steps[round_of(request)]

    state, told = asyncio.run(work(tmp_path, lambda _: FunctionModel(say), tools=[fetch, push]))
    assert state is TaskState.COMPLETED
    assert "ada may not push with [secret]." in shown
    assert_no_canary(told, tmp_path, caplog)
