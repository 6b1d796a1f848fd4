"""Answers that do not end: the limits of an answer in bytes, in tool calls and in time; figures that cannot be."""

from __future__ import annotations

import asyncio
import itertools
import math
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import ToolCall, Usage
from ai_whisperer.models.base import (
    MAX_CALLS,
    CallDelta,
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from tests.simulation.stage import play
from tests.simulation.test_limits_of_work import told_of
from tests.simulation.test_model_faults import Event, StreamModel, with_model


class Endless:
    """Sends the same again and again, with so many seconds between; `sent` counts, `left` says that it was closed."""

    def __init__(self, event: StreamEvent, *, seconds: float = 0.0) -> None:
        self._event = event
        self._seconds = seconds
        self.sent = 0
        self.asked = 0
        self.left = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:  # noqa: ARG002
        self.asked += 1
        try:
            for self.sent in itertools.count(1):
                await asyncio.sleep(self._seconds)
                yield self._event
        finally:
            self.left = True

    async def close(self) -> None:
        pass


A_CALL = ToolCall(call_id="c", name="add", arguments="{}")


@pytest.mark.parametrize(
    ("event", "most", "words"),
    [
        (TextDelta(text="x" * 100), 10, r"more than 1,000 bytes \(max_answer_bytes\)"),
        (TextDelta(text="\U0001f600" * 25), 10, r"more than 1,000 bytes \(max_answer_bytes\)"),
        (ReasoningDelta(text="x" * 100), 10, r"more than 1,000 bytes \(max_answer_bytes\)"),
        (CallDelta(arguments="x" * 100), 10, r"more than 1,000 bytes \(max_answer_bytes\)"),
        (CallRequested(call=A_CALL), 1_000 // 6, r"more than 1,000 bytes \(max_answer_bytes\)"),
    ],
)
def test_an_answer_is_cut_off_at_its_size_and_the_task_fails(event: StreamEvent, most: int, words: str) -> None:
    model = Endless(event)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_answer_bytes": 1_000}})
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.state is TaskState.FAILED
        assert ended.error is not None
        assert ended.error.code == "answer_size"
        assert re.search(words, ended.error.message)
        assert (model.sent, model.asked) == (most + 1, 1)
        (told,) = await told_of(manager, "max_answer_bytes")
        assert (told["max"], told["action"], told["taskId"]) == (1_000, "failed", ended.id)
        assert manager.get_agent_status("alice").state == "idle"

    play(scenario, models=with_model(model))


def test_arguments_that_take_long_to_take_apart_fail_the_task() -> None:
    call = ToolCall(call_id="c", name="add", arguments='{"a": [' + "0," * 20_000 + "0]}")
    model = StreamModel([CallRequested(call=call), Finished()])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.error is not None
        assert ended.error.code == "answer_size"
        assert "more than 10,000 values" in ended.error.message

    play(scenario, models=with_model(model))


def test_a_long_text_comes_in_pieces_and_is_whole_in_the_journal() -> None:
    text = "It is so: \U0001f600. " * 5_000
    model = StreamModel([TextDelta(text=text), Finished()])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        subscription = manager.subscribe(deltas=True)
        task = await manager.send_task("alice", "go")
        told: list[str] = []
        async for note in subscription:
            if note.name == "async.task.delta":
                told.append(note.params["text"])
            elif note.name == "async.task.completed":
                break
        assert max(map(len, told)) <= 40_000
        (step,) = await manager.list_steps(task.id)
        assert step.answer is not None
        assert step.answer.text == text

    play(scenario, models=with_model(model))


@pytest.mark.parametrize("event", [CallDelta(name="add", arguments=""), CallRequested(call=A_CALL)])
def test_an_answer_has_so_many_tool_calls_at_most(event: StreamEvent) -> None:
    model = Endless(event)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_steps_per_task": 100_000}})
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.error is not None
        assert f"more than {MAX_CALLS:,} tool calls at once" in ended.error.message
        assert model.sent == MAX_CALLS + 1

    play(scenario, models=with_model(model))


def test_an_answer_that_drips_for_ever_is_cut_off_after_its_time() -> None:
    model = Endless(TextDelta(text="x"), seconds=100.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        begun = asyncio.get_running_loop().time()
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert 7_200 <= asyncio.get_running_loop().time() - begun < 7_300
        assert ended.error is not None
        assert ended.error.code == "answer_time"
        assert "longer than 7,200 seconds (max_answer_seconds)" in ended.error.message
        assert model.asked == 1
        (told,) = await told_of(manager, "max_answer_seconds")
        assert (told["max"], told["action"]) == (7_200.0, "failed")

    play(scenario, models=with_model(model))


def test_the_time_of_an_answer_may_be_shorter_than_a_stall_whoever_else_asks() -> None:
    model = Endless(TextDelta(text="x"), seconds=1.0)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob", {"limits": {"max_answer_seconds": 300}})
        await manager.create_agent("alice", {"limits": {"max_answer_seconds": 10}})
        slow = await manager.send_task("bob", "go")
        await asyncio.sleep(50)
        begun = asyncio.get_running_loop().time()
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert asyncio.get_running_loop().time() - begun < 12
        assert ended.error is not None
        assert "longer than 10 seconds" in ended.error.message
        await manager.cancel_task(slow)

    play(scenario, models=with_model(model))


def test_a_tool_call_that_is_being_written_is_no_stall_however_long_it_takes() -> None:
    pieces: list[Event] = [event for _ in range(20) for event in (100.0, CallDelta(arguments="x"))]
    model = StreamModel([*pieces, TextDelta(text="fine"), Finished()])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "fine"
        assert model.asked == [1]

    play(scenario, models=with_model(model))


def test_halves_of_characters_are_whole_in_the_deltas_and_in_the_journal() -> None:
    events: list[Event] = [
        ReasoningDelta(text="\ud83d"),
        TextDelta(text="a\ud83d"),
        ReasoningDelta(text="\ude00"),
        TextDelta(text="\ude00b\ud83d"),
        Finished(finish="\ud83d", model="\ude00", provider="\ud83d\ude00"),
    ]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        subscription = manager.subscribe(deltas=True)
        task = await manager.send_task("alice", "go")
        told = {"analysis": "", "final": ""}
        async for note in subscription:
            if note.name == "async.task.delta":
                told[note.params["channel"]] += note.params["text"]
            elif note.name == "async.task.completed":
                break
        assert told == {"analysis": "\U0001f600", "final": "a\U0001f600b\ufffd"}
        (step,) = await manager.list_steps(task.id)
        assert step.answer is not None
        assert (step.answer.text, step.answer.reasoning) == ("a\U0001f600b\ufffd", "\U0001f600")
        assert (step.answer.finish, step.answer.model, step.answer.provider) == ("\ufffd", "\ufffd", "\U0001f600")

    play(scenario, models=with_model(StreamModel(events)))


ODD: list[Any] = [-1, -(10**30), 10**30, math.nan, math.inf, -math.inf, 0.5, "7", None, True, [], b"x"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cached_tokens", "cost_usd"])
def test_figures_that_cannot_be_ruin_no_budget(field: str, odd: Any) -> None:
    figures: dict[str, Any] = {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01} | {field: odd}
    model = StreamModel([TextDelta(text="fine"), Finished(usage=Usage(**figures))])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.set_limits({"max_tokens": 100_000})
        await manager.create_agent("alice", {"limits": {"max_tokens_per_agent": 90_000}})
        for _ in range(3):
            assert await manager.run_task("alice", "go") == "fine"
        usage = manager.get_agent_status("alice").usage
        assert 0 < usage.input_tokens < 10_000
        assert 0 < usage.output_tokens < 10_000
        assert usage.cached_tokens == 0
        assert usage.cost_usd is None or 0 < usage.cost_usd < 2
        await manager.flushed()

    play(scenario, models=with_model(model))


def test_tokens_that_a_provider_hides_still_use_up_a_budget() -> None:
    model = StreamModel([TextDelta(text="x" * 4_000), Finished(usage=Usage(input_tokens=-10, output_tokens=-(10**6)))])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_tokens_per_agent": 6_000}})
        for _ in range(10):
            task = await manager.send_task("alice", "go")
            await asyncio.sleep(5)
            if manager.get_agent_status("alice").paused_limit:
                break
        assert manager.get_agent_status("alice").paused_limit == "max_tokens_per_agent"
        await manager.cancel_task(task)

    play(scenario, models=with_model(model))
