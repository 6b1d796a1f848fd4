"""People look at what models are shown, make it shorter, and say how that is done."""

from __future__ import annotations

from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.errors import (
    DefinitionError,
    DuplicateIdError,
    InvalidInputError,
)
from ai_whisperer.models.scripted import FunctionModel
from tests.simulation import stage
from tests.simulation.context_stage import WINDOW, Listener, chat, create, play, texts_of


def test_a_person_sees_how_long_a_talk_is_and_makes_it_shorter() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        before = await manager.get_context("ann")
        assert (before.thread_id, before.window, before.window_known) == ("talk", WINDOW, True)
        assert before.compaction is None
        task = await manager.compact_context("ann", thread_id="talk", task_id="shorter")
        assert (await manager.compact_context("ann", task_id="shorter")).id == task.id
        with pytest.raises(DuplicateIdError, match="shorter"):
            await manager.compact_context("ann", thread_id="another", task_id="shorter")
        done = await manager.wait_task(task)
        after = await manager.get_context("ann", thread_id="talk")
        assert done.result is not None
        assert done.result.final == (
            f"The conversation had about {before.tokens:,} tokens and has {after.tokens:,} now."
        )
        assert after.tokens < before.tokens
        assert after.compaction is not None
        assert after.compaction.reason == "asked"
        assert after.compacted_in == "shorter.1"
        await chat(manager, 1, first=50)
        shown = texts_of(model.requests[-1])
        assert "They talked." in shown
        assert "Make this conversation shorter" not in shown

    play(scenario, model)
    assert len(model.requests) == 9


def test_a_thread_that_there_is_not_is_named_with_the_nearest() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        with pytest.raises(InvalidInputError, match="has no conversation yet"):
            await manager.get_context("ann")
        await chat(manager, 1)
        with pytest.raises(InvalidInputError, match=r"has no thread 'tlak'\. Did you mean 'talk'"):
            await manager.compact_context("ann", thread_id="tlak")

    play(scenario, Listener())


def test_a_talk_that_is_short_already_stays_as_it_is() -> None:
    model = Listener()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 1)
        done = await manager.wait_task(await manager.compact_context("ann"))
        assert done.result is not None
        assert "nothing to make shorter" in done.result.final
        assert (await manager.get_context("ann")).compaction is None

    play(scenario, model)
    assert model.summaries == []


def test_a_summary_is_paid_for_like_any_request() -> None:
    model = Listener()
    model.summary = lambda _: Answer(text="They talked.", usage=Usage(input_tokens=700, output_tokens=30, cost_usd=0.5))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager)
        await chat(manager, 8)
        before = manager.get_agent_status("ann").usage
        await manager.wait_task(await manager.compact_context("ann"))
        after = manager.get_agent_status("ann").usage
        assert after.model_calls - before.model_calls == 1
        assert after.input_tokens - before.input_tokens == 700
        assert after.cost_usd == 0.5

    play(scenario, model)


def test_another_model_writes_the_summaries_if_the_definition_says_so() -> None:
    made: list[str] = []
    models = {"talker": Listener(), "writer": Listener(summary="Written by another.")}

    def model_named(name: str) -> FunctionModel:
        made.append(name)
        return FunctionModel(models[name], latency_seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"model": "talker", "tools": [], "context": {"model": "writer"}})
        await chat(manager, 6)
        assert made == ["talker"]
        await manager.wait_task(await manager.compact_context("ann"))
        assert made == ["talker", "writer"]
        report = await manager.get_context("ann")
        assert report.compaction is not None
        assert report.compaction.summary == "Written by another."

    stage.play(scenario, models=model_named)


@pytest.mark.parametrize(
    ("context", "complaint"),
    [
        ({"window": 10}, "context.window must be at least 1000, not 10"),
        ({"keep": 0}, "context.keep must be at least 1, not 0"),
        ({"compact": "never"}, "context.compact"),
        ({"windw": 10_000}, "Did you mean `context.window`|Did you mean `window`"),
        ({"window": "much"}, "context.window` must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_field(context: dict[str, Any], complaint: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match=complaint):
            await manager.create_agent("ann", {"context": context})

    play(scenario, Listener())


def test_a_window_that_the_prompt_fills_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match="the prompt alone has about 2,500"):
            await manager.create_agent("ann", {"prompt": "x" * 10_000, "context": {"window": 4_000}})

    play(scenario, Listener())
