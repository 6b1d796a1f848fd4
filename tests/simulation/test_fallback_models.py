"""Agents that name several models: the others are asked while the first cannot answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.providers import Account
from ai_whisperer.errors import (
    DefinitionError,
    ModelEmptyError,
    ModelError,
    ModelNameError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import Model, ModelRequest
from ai_whisperer.models.catalog import LateModel, resolve
from ai_whisperer.models.scripted import FunctionModel
from tests.simulation.provider import DOWN, now
from tests.simulation.stage import play, play_over_crash, until

MODELS = ("first", "second")
Errors = Callable[[], ModelError | None]


class Stage:
    """Models by name; each answers with its name, or fails as long as its `errors` says so."""

    def __init__(self, **errors: Errors) -> None:
        self.errors = errors
        self.asked: list[tuple[float, str]] = []

    def __call__(self, name: str) -> Model:
        def say(_: ModelRequest) -> str:
            self.asked.append((now(), name))
            error = self.errors[name]() if name in self.errors else None
            if error is not None:
                raise error
            return name

        return FunctionModel(say, latency_seconds=0.1, account=Account(provider=name))

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.asked]


def down_until(time: float) -> Errors:
    return lambda: ModelUnavailableError(DOWN) if now() < time else None


def always(make: Callable[[], ModelError]) -> Errors:
    return make


async def retries(manager: AsyncAgentSessionManager) -> list[dict[str, Any]]:
    await manager.flushed()
    return [note.params for note in await manager.notifications() if note.name == "step.retried"]


def test_the_first_model_answers_while_it_can() -> None:
    stage = Stage()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        task = await manager.send_task("a", "go")
        assert (await manager.wait_task(task)).result is not None
        (step,) = await manager.list_steps(task.id)
        assert (step.model, stage.names) == ("first", ["first"])

    play(scenario, models=stage)


def test_in_an_outage_the_next_model_answers_and_the_first_is_asked_again_when_it_is_back() -> None:
    stage = Stage(first=down_until(300))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        task = await manager.send_task("a", "go")
        await manager.wait_task(task)
        assert now() < 5
        (step,) = await manager.list_steps(task.id)
        assert (step.model, stage.names) == ("second", ["first", "first", "second"])
        first, last = await retries(manager)
        assert (first["model"], first.get("nextModel")) == ("first", None)
        assert (last["model"], last["nextModel"], last["error"]["message"]) == ("first", "second", DOWN)
        while now() < 290:
            assert await manager.run_task("a", "go") == "second"
            await asyncio.sleep(5)
        assert stage.names.count("first") < 30, "one that is down for all is tried now and then"
        await asyncio.sleep(120)
        await manager.run_task("a", "go")
        assert await manager.run_task("a", "go") == "first"

    play(scenario, models=stage)


@pytest.mark.parametrize(
    ("make", "attempts"),
    [
        (lambda: ModelRefusedError("The provider refused the key (status 401)."), 1),
        (lambda: ModelNameError("There is no such model."), 1),
        (lambda: ModelTooLongError("The conversation is too long for the model."), 1),
        (lambda: ModelRateLimitError("Slow down.", retry_after_seconds=60), 1),
        (lambda: ModelRateLimitError("Slow down."), 3),
        (ModelEmptyError, 5),
    ],
)
def test_the_next_model_answers_when_the_first_refuses_or_fails(make: Callable[[], ModelError], attempts: int) -> None:
    stage = Stage(first=always(make))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS, "retry": {"first_delay_seconds": 0.1}})
        assert await manager.run_task("a", "go") == "second"
        assert stage.names == ["first"] * attempts + ["second"]

    play(scenario, models=stage)


def test_a_model_that_refuses_the_key_is_passed_over_for_a_while_with_the_reason() -> None:
    stage = Stage(first=always(lambda: ModelRefusedError("Check the key.")))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        for _ in range(3):
            assert await manager.run_task("a", "go") == "second"
        assert stage.names == ["first", "second", "second", "second"]
        await manager.flushed()
        (skipped,) = [note.params for note in await manager.notifications() if note.name == "model.skipped"]
        assert (skipped["model"], skipped["reason"]) == ("first", "Check the key.")
        await asyncio.sleep(301)
        await manager.run_task("a", "go")
        assert stage.names[-2:] == ["first", "second"]

    play(scenario, models=stage)


def test_a_conversation_that_is_too_long_for_the_first_model_says_nothing_of_the_next_request() -> None:
    stage = Stage(first=always(lambda: ModelTooLongError("Too long.")))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        await manager.run_task("a", "go")
        del stage.errors["first"]
        assert await manager.run_task("a", "go") == "first"

    play(scenario, models=stage)


def test_when_all_are_down_the_request_waits_and_begins_with_the_first_again() -> None:
    stage = Stage(first=down_until(60), second=down_until(1e9))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        assert await manager.run_task("a", "go") == "first"
        assert 60 <= now() < 200

    play(scenario, models=stage)


def test_when_all_refuse_the_task_fails_with_the_last_reason() -> None:
    stage = Stage(
        first=always(lambda: ModelRefusedError("Check the first key.")),
        second=always(lambda: ModelRefusedError("Check the second key.")),
    )

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        task = await manager.wait_task(await manager.send_task("a", "go"))
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error.message == "Check the second key."
        assert stage.names == ["first", "second"]

    play(scenario, models=stage)


def test_one_that_is_down_is_waited_for_when_the_other_one_refuses() -> None:
    stage = Stage(first=down_until(60), second=always(lambda: ModelRefusedError("Check the key.")))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        assert await manager.run_task("a", "go") == "first"
        assert stage.names.count("second") == 1
        assert 60 <= now() < 200

    play(scenario, models=stage)


def test_those_that_wait_at_a_gate_go_on_to_the_next_model_when_it_is_shut() -> None:
    stage = Stage(first=down_until(1e9))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = []
        for number in range(100):
            await manager.create_agent(f"a{number}", {"model": MODELS})
            tasks.append(await manager.send_task(f"a{number}", "go"))
        for task in tasks:
            assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert now() < 10
        assert stage.names.count("first") < 40, "most have never asked it"

    play(scenario, models=stage)


def asks_for(seconds: float) -> Errors:
    """Wants to be left alone for so long from its first request on."""
    since: list[float] = []

    def error() -> ModelError | None:
        since.append(now())
        left = since[0] + seconds - now()
        return ModelRateLimitError("Slow down.", retry_after_seconds=left) if left > 0 else None

    return error


def test_when_all_want_to_be_left_alone_the_one_that_is_back_first_is_asked() -> None:
    stage = Stage(first=asks_for(3_000), second=asks_for(60), third=asks_for(3_000))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("a", "b"):
            await manager.create_agent(name, {"model": ("first", "second", "third")})
        found_out = await manager.send_task("a", "go")
        await asyncio.sleep(5)
        came_later = await manager.send_task("b", "go")
        for task in (found_out, came_later):
            ended = await manager.wait_task(task)
            assert ended.result is not None
            assert ended.result.final == "second"
        assert 60 <= now() < 70
        assert stage.names[:3] == ["first", "second", "third"]

    play(scenario, models=stage)


def test_a_model_that_is_made_late_is_passed_over_while_its_account_lets_nobody_in() -> None:
    stage = Stage(first=asks_for(3_000))

    def models(name: str) -> Model:
        async def make() -> Model:
            return stage(name)

        return LateModel(make)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("a", "b"):
            await manager.create_agent(name, {"model": MODELS})
            assert await manager.run_task(name, "go") == "second"
        assert (stage.names, now() < 10) == (["first", "second", "second"], True)

    play(scenario, models=models)


def test_what_a_request_may_cost_follows_the_model_that_is_asked() -> None:
    class Priced(FunctionModel):
        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__(self.say, account=Account(provider=name))

        def say(self, _: ModelRequest) -> Answer:
            if self.name == "dear":
                raise ModelUnavailableError(DOWN)
            return Answer(text=self.name, usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.001))

        def price_usd(self, input_tokens: int, output_tokens: int) -> float:
            return (input_tokens + output_tokens) * (1.0 if self.name == "dear" else 1e-9)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        config = {"model": ("cheap",), "settings": {"max_tokens": 10}, "limits": {"max_cost_usd_per_agent": 5.0}}
        await manager.create_agent("a", config)
        assert await manager.run_task("a", "go") == "cheap"
        await manager.create_agent("b", {**config, "model": ("dear", "cheap")})
        task = await manager.send_task("b", "go")
        await until(lambda: manager.get_agent_status("b").paused_limit is not None)
        await manager.set_limits({"max_cost_usd_per_agent": 1e6}, agent_id="b")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    play(scenario, models=Priced)


def test_after_a_crash_the_journal_says_which_model_was_asked_and_the_first_is_asked_again() -> None:
    stage = Stage(first=down_until(20), second=down_until(1e9))

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": MODELS})
        await manager.send_task("a", "go", task_id="t")
        await asyncio.sleep(1_000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert manager._session.roster.agents["a"].record.definition.models == MODELS
        (step,) = await manager.list_steps("t")
        assert step.model in MODELS
        assert step.error is not None
        stage.errors.clear()
        stage.asked.clear()
        await manager.wait_task("t")
        assert stage.names == ["first"]

    play_over_crash(before, after, models=stage, crash_after_seconds=10)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ([], "model must not be empty"),
        (["scripted", " "], "model must not be empty"),
        (["scripted", "scripted"], "model[1] is 'scripted' again"),
        ([f"scripted:{number}" for number in range(11)], "at most 10"),
        (["scripted", 5], "model[1]"),
        (["scripted", "opnai-chat:x"], "model[1]: There is no model 'opnai-chat:x'"),
        (["openai-chat:x", "anthropic:y"], "none of them can be asked"),
        ({"first": "x"}, "model"),
    ],
)
def test_a_list_of_models_that_makes_no_sense_is_refused(
    model: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_keys(monkeypatch)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError) as refused:
            await manager.create_agent("a", {"model": model})
        assert told in refused.value.message
        assert manager.list_agents() == []

    play(scenario, models=resolve)


def test_a_model_without_a_key_is_told_when_the_agent_is_made_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_keys(monkeypatch)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": ["anthropic:claude-x", "scripted"]})
        await manager.flushed()
        (skipped,) = [note.params for note in await manager.notifications() if note.name == "model.skipped"]
        assert skipped["model"] == "anthropic:claude-x"
        assert "ANTHROPIC_API_KEY" in skipped["reason"]
        assert "scripted model" in str(await manager.run_task("a", "go"))

    play(scenario, models=resolve)


def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    anthropic = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", *anthropic):
        monkeypatch.delenv(name, raising=False)
